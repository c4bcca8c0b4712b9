"""Calibrators straight from their formulas: direct sums, loops, general-purpose minimisers."""

from __future__ import annotations

import itertools

import numpy as np
from scipy.optimize import minimize, minimize_scalar

from tests.twins.smooth import reflected_gaussian


def kernel_regression(p, y, w, s, t):
    """The mean outcome at each t, rows weighted by the reflected Gaussian around it."""
    p, y = np.asarray(p, float), np.asarray(y, float)
    w = np.ones(len(p)) if w is None else np.asarray(w, float)
    kernel = reflected_gaussian(np.atleast_1d(t)[:, None], p[None, :], s)
    return kernel @ (w * y) / (kernel @ w)


def isotonic(y, w):
    """The nearest rising values by the max-min formula: max over i <= k of min over j >= k."""
    y, w, n = np.asarray(y, float), np.asarray(w, float), len(y)

    def mean(i, j):
        return np.sum((w * y)[i : j + 1]) / np.sum(w[i : j + 1])

    return np.array(
        [max(min(mean(i, j) for j in range(k, n)) for i in range(k + 1)) for k in range(n)]
    )


def piecewise_linear(x, y, p):
    """The value at one p, piece by piece."""
    if p <= x[0]:
        return y[0]
    for k in range(len(x) - 1):
        if x[k] <= p < x[k + 1]:
            return y[k] + (y[k + 1] - y[k]) * (p - x[k]) / (x[k + 1] - x[k])
    return y[-1]


def binned_means(p, y, edges, q):
    """The mean outcome of the rows that share q's bin, or the bin's middle."""
    for low, high in itertools.pairwise(edges):
        inside = (p >= low) & ((p < high) | (high == 1))
        if low <= q < high or (q == 1 and high == 1):
            return y[inside].mean() if inside.any() else (low + high) / 2
    raise AssertionError


def platt_targets(y):
    """Outcomes drawn towards each other, as Platt has them."""
    n_one, n_zero = np.sum(y), np.sum(1 - y)
    return y * (n_one + 1) / (n_one + 2) + (1 - y) / (n_zero + 2)


def beta(p, y, one_slope):
    """The likeliest a, b >= 0 and c of sigmoid(a log p - b log(1 - p) + c), unweighted."""
    target = platt_targets(np.asarray(y, float))

    def loss(theta):
        a, b, c = (theta[0], *theta) if one_slope else theta
        z = a * np.log(p) - b * np.log(1 - p) + c
        return np.mean(np.logaddexp(0, z) - target * z)

    bounds = [(0, None)] * (1 if one_slope else 2) + [(None, None)]
    start = np.array([1.0] * (len(bounds) - 1) + [0.0])
    found = minimize(loss, start, bounds=bounds, method="L-BFGS-B", tol=1e-15)
    return (found.x[0], *found.x) if one_slope else tuple(found.x)


def temperature(prob, label):
    """The likeliest T between 0.01 and 100 of P^(1/T), normalised."""

    def loss(log_t):
        power = prob ** np.exp(-log_t)
        return -np.mean(
            np.log((power / power.sum(axis=1, keepdims=True))[range(len(label)), label])
        )

    found = minimize_scalar(
        loss, bounds=(np.log(0.01), np.log(100)), method="bounded", options={"xatol": 1e-9}
    )
    return float(np.exp(found.x))


def mean_movement(p, w, s, outcome, n_points=4001):
    """The mean distance from p to outcome(p + noise), over the noise and the rows: quadrature."""
    t = (np.arange(n_points) + 0.5) / n_points
    w = np.ones(len(p)) if w is None else np.asarray(w, float)
    density = reflected_gaussian(t[None, :], np.asarray(p, float)[:, None], s) / n_points
    return float(
        w @ (density * np.abs(outcome(t)[None, :] - np.asarray(p)[:, None])).sum(axis=1) / w.sum()
    )


def softmax_loss(prob, label, temperature, weights, bias, ridge):
    """Mean cross-entropy of softmax(A x + b) with its penalty, row by row."""
    n, k = prob.shape
    mix, total = 1 / (n + 1), 0.0
    for row, true in zip(prob, label, strict=True):
        power = row ** (1 / temperature)
        x = np.log((1 - mix) * power / power.sum() + mix / k)
        z = weights @ x + bias
        total += np.log(np.exp(z).sum()) - z[true]
    change = weights - np.eye(k)
    diagonal = np.diag(change)
    off = np.sum(change**2) - np.sum(diagonal**2)
    penalty = k / n * (diagonal @ diagonal + bias @ bias) + k * (k - 1) / n * off
    return total / n + ridge * penalty


def shifted(p, trained, new):
    """Bayes' rule with another base rate, odds by odds."""
    odds = p / (1 - p) * (new / (1 - new)) / (trained / (1 - trained))
    return odds / (1 + odds)


def saerens(prob, trained, steps=20_000):
    """The EM algorithm of Saerens et al., eq. 2.9, for very many steps."""
    rates = np.array(trained, float)
    for _ in range(steps):
        posterior = prob * rates / trained
        rates = (posterior / posterior.sum(axis=1, keepdims=True)).mean(axis=0)
    return rates


def residual_map(p, y, s, t):
    """t and the mean residual around it, with one row more at t whose residual is 0."""
    kernel = reflected_gaussian(np.atleast_1d(t)[:, None], np.asarray(p)[None, :], s)
    own = reflected_gaussian(np.atleast_1d(t), np.atleast_1d(t), s)
    return t + kernel @ (np.asarray(y) - p) / (kernel.sum(axis=1) + own)
