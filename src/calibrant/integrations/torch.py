"""Calibration measures as torchmetrics metrics, of constant size and exact across processes.

Their state is that of a :class:`calibrant.Sketch`: whole numbers of rows and float64 sums for each
cell of scores, 2.4 MB however many rows come in. States merge by addition, so distributed training
synchronises them exactly: every process gets what one process would have got from all rows.

No operation waits for the device, so none depends on values: rows that are not to be counted are
added as zeros instead of being selected.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, Self

from calibrant.data import validation
from calibrant.data.sketch import Sketch
from calibrant.data.sketch_cells import (
    ABOVE,
    AT_ONE,
    AT_ZERO,
    BELOW,
    DEFAULT_CELLS,
    LOGIT_REACH,
    Cells,
    CellTable,
    Scale,
)
from calibrant.data.validation import as_array
from calibrant.errors import CalibrantError, MissingDependencyError
from calibrant.measures.registry import answered_by_sketches, find_measure, measures

try:
    import torch
    from torch import Tensor
    from torchmetrics import Metric
except ModuleNotFoundError as problem:
    raise MissingDependencyError(
        "calibrant.integrations.torch needs {package}",
        hint="pip install 'calibrant[torch]'",
        package=problem.name,
    ) from problem

__all__ = [
    "BinnedCalibrationError",
    "CumulativeCalibrationError",
    "LogitSmoothedCalibrationError",
    "SketchMetric",
    "SmoothCalibrationError",
]


class TensorCells:
    """The cells of a sketch, for tensors: the table of edges on the device that asks."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._edges = torch.tensor(cells.edges)

    def locate(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cell of each float64 score, and its offset from the centre in cell widths.

        Arithmetic guesses and the edges decide, as in :mod:`calibrant.data.sketch_cells`.
        """
        if self._edges.device != p.device:
            self._edges = self._edges.to(p.device)
        edges, n = self._edges, self.cells.n_cells
        place = self._guess(p)
        cell = place.nan_to_num().clamp(0, n - 1).long()
        cell = cell - (p < edges[cell]).long()
        cell = (cell + (p >= edges[cell + 1]).long()).clamp(0, n - 1)
        offset = place - cell - 0.5
        if self.cells.scale == "probability":
            return cell, offset
        below, above = p < edges[0], p >= edges[-1]
        cell = cell.where(~below, n + BELOW - (p == 0).long() * (BELOW - AT_ZERO))
        cell = cell.where(~above, n + ABOVE + (p == 1).long() * (AT_ONE - ABOVE))
        return cell, offset.where(~(below | above), 0.0)

    def _guess(self, p: Tensor) -> Tensor:
        if self.cells.scale == "probability":
            return p * self.cells.n_cells
        return (p.logit() + LOGIT_REACH) / self.cells.width


def add_rows(
    cells: TensorCells, counts: Tensor, offsets: Tensor, p: Tensor, outcome: Tensor, counted: Tensor
) -> None:
    """Add rows to a table in place.

    Parameters
    ----------
    cells
        Which score is counted where.
    counts
        The number of rows by outcome and cell, int64, shape (2, cells).
    offsets
        The sums of the offsets d and of d^2 by outcome and cell, float64, shape (2, 2, cells).
    p
        Scores, float64, shape (n,).
    outcome
        Whether each row's outcome is 1.
    counted
        Which rows to count; the scores of others may be anything.
    """
    cell, offset = cells.locate(p.where(counted, 0.5))
    place = cell + counts.shape[1] * outcome.long()
    offset = offset.where(counted, 0.0)
    counts.view(-1).index_add_(0, place, counted.long())
    offsets[0].view(-1).index_add_(0, place, offset)
    offsets[1].view(-1).index_add_(0, place, offset * offset)


# What predictions and targets mean: how a batch becomes rows of one binary problem.
#
# What can be seen from shapes and types is always checked. What takes a look at the values is
# answered as a tensor, so that the caller decides whether to wait for it.


class Task(Protocol):
    """A way to read predictions and targets."""

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions and targets with one row a prediction, refusing wrong shapes."""

    def reduce(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the float64 score of each row, and whether its outcome is 1."""

    def is_target(self, target: Tensor) -> Tensor:
        """Tell which targets can be."""

    def is_prediction(self, preds: Tensor) -> Tensor:
        """Tell which rows of predictions can be, as far as their scores do not tell."""

    def check(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Refuse rows that cannot be and are not ignored, saying what is wrong."""


@dataclass(frozen=True)
class Binary:
    """One probability a row, of the outcome 1."""

    from_logits: bool

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return both with one axis."""
        _check_floating(preds)
        if preds.shape != target.shape:
            raise CalibrantError(
                "must have the shape of {target}",
                argument="preds",
                value=tuple(preds.shape),
                found="{value} and {shape}",
                hint="{task}='multiclass' takes one column per class",
                shape=tuple(target.shape),
            )
        return preds.reshape(-1), target.reshape(-1)

    def reduce(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the probabilities and whether the target is 1."""
        score = preds.double()
        return score.sigmoid() if self.from_logits else score, target == 1

    def is_target(self, target: Tensor) -> Tensor:
        """Tell which targets are 0 or 1."""
        return (target == 0) | (target == 1)

    def is_prediction(self, preds: Tensor) -> Tensor:
        """Leave it to the scores."""
        return torch.ones_like(preds, dtype=torch.bool)

    def check(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Refuse rows that cannot be."""
        target = target.masked_fill(ignored, 0)
        hint = (
            "soft labels are for calibrant.Sketch"
            if target.is_floating_point()
            else "name a value to leave out with ignore_index, or give task='multiclass'"
        )
        _check_targets(target, self.is_target(target), "must be 0 or 1", hint)
        preds = preds.masked_fill(ignored, 0)
        if self.from_logits:
            validation.check_logits(as_array(preds, "preds"), "preds")
        else:
            _check_probabilities(preds)


@dataclass(frozen=True)
class Multiclass:
    """One column of probabilities a class, of which the highest predicts that class."""

    n_classes: int
    from_logits: bool

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions of shape (n, classes) and as many targets."""
        _check_floating(preds)
        if target.is_floating_point():
            raise CalibrantError(
                "must hold classes as whole numbers",
                argument="target",
                value=target.dtype,
            )
        shape = (*target.shape[:1], self.n_classes, *target.shape[1:])
        if target.ndim == 0 or preds.shape != shape:
            raise CalibrantError(
                "must have shape (n, {n_classes}, ...) and {target} (n, ...)",
                argument="preds",
                value=tuple(preds.shape),
                found="{value} and {shape}",
                n_classes=self.n_classes,
                shape=tuple(target.shape),
            )
        return preds.movedim(1, -1).reshape(-1, self.n_classes), target.reshape(-1)

    def reduce(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the highest probability and whether its class, the first of equals, is right."""
        prob = preds.softmax(dim=1, dtype=torch.float64) if self.from_logits else preds
        top, predicted = prob.max(dim=1)
        return top.double(), predicted == target

    def is_target(self, target: Tensor) -> Tensor:
        """Tell which targets are classes."""
        return (target >= 0) & (target < self.n_classes)

    def is_prediction(self, preds: Tensor) -> Tensor:
        """Tell which rows are not negative anywhere and sum to 1."""
        if self.from_logits:
            return torch.ones_like(preds[:, 0], dtype=torch.bool)
        excess = preds.sum(dim=1, dtype=torch.float64) - 1
        return (preds.amin(dim=1) >= 0) & (excess.abs() <= validation.ROW_SUM_TOLERANCE)

    def check(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Refuse rows that cannot be."""
        target = target.masked_fill(ignored, 0)
        rule = f"must be a class from 0 to {self.n_classes - 1}"
        hint = "name a value to leave out with {ignore_index}"
        _check_targets(target, self.is_target(target), rule, hint)
        preds = preds.masked_fill(ignored[:, None], 1 / self.n_classes)
        if self.from_logits:
            # -inf rules a class out; only these have no softmax.
            bad = preds.softmax(dim=1, dtype=torch.float64).isnan().any(dim=1)
            raise CalibrantError(
                "must have rows with a softmax",
                argument="preds",
                value=preds[_first(bad)].tolist(),
                found="nan, inf or nothing but -inf",
                position=_first(bad),
                count=int(bad.sum()),
            )
        _check_probabilities(preds)
        validation.check_row_sums(as_array(preds, "preds"), "preds")


def _check_floating(preds: Tensor) -> None:
    if not preds.is_floating_point():
        raise CalibrantError(
            "must be a floating-point tensor",
            argument="preds",
            value=preds.dtype,
            hint="the order is ({preds}, {target})",
        )


def _check_targets(target: Tensor, known: Tensor, rule: str, hint: str) -> None:
    if bool(known.all()):
        return
    index = _first(~known)
    raise CalibrantError(
        rule,
        argument="target",
        value=target[index],
        position=index,
        count=int((~known).sum()),
        hint=hint,
    )


def _check_probabilities(preds: Tensor) -> None:
    values = as_array(preds, "preds")
    validation.check_finite(values, "preds")
    try:
        validation.check_probabilities(values, "preds")
    except CalibrantError as problem:
        raise CalibrantError(
            problem.rule,
            argument=problem.argument,
            value=problem.value,
            position=problem.position,
            count=problem.count,
            hint="{from_logits}=True takes logits",
        ) from None


def _first(bad: Tensor) -> int:
    return int(bad.nonzero()[0])


# What all metrics share: options, state, and how batches come in.

# Devices that have no float64: their tensors are counted on the CPU, where the state stays.
_WITHOUT_FLOAT64 = ("mps",)


class SketchMetric(Metric):
    """A measure whose state is a sketch: any that a sketch can answer.

    Parameters
    ----------
    task
        "binary": `preds` are probabilities of the outcome 1 and `target` is 0 or 1, both of any
        same shape. "multiclass": `preds` has shape (n, classes, ...) and `target` holds classes,
        shape (n, ...); measured is whether the class of highest probability, the first of equals,
        is right as often as its probability says.
    measure
        The name of the measure, such as "density_ece", or the function itself.
    options
        Its options by name, such as ``{"bandwidth": 0.1}``.
    num_classes
        The number of classes, for the multiclass task alone.
    from_logits
        Take `preds` for logits, and their sigmoid or softmax, in float64, for the probabilities.
        Otherwise values outside [0, 1] are refused: unlike metrics of torchmetrics, this one never
        guesses, batch by batch, what it was given.
    ignore_index
        A value of `target` whose rows count for nothing, whatever their predictions.
    validate_args
        Check the values of every batch and say which row is wrong, which waits for the device
        once a batch. Otherwise nothing waits: rows that cannot be counted are left out, their
        number is kept, and `compute` raises if there are any. Class probabilities are then not
        checked to sum to 1.
    n_cells
        How many cells the sketch has; see :class:`calibrant.Sketch`.
    **kwargs
        Those of ``torchmetrics.Metric``, such as `sync_on_compute` or `process_group`.

    Notes
    -----
    Predictions of any float type are counted as the numbers that they are, in float64, on the
    device that holds them; on MPS, which has no float64, they are moved to the CPU, where the
    state stays. Casting a module to another dtype leaves the state as it is.

    A call of the metric itself (`forward`) also measures the batch alone; `update` is cheaper.
    Metrics in one ``MetricCollection`` that differ only in what they measure share one state.

    Examples
    --------
    >>> import torch
    >>> metric = SketchMetric(measure="brier_score")
    >>> metric(torch.tensor([0.5, 1.0]), torch.tensor([0, 1]))
    tensor(0.1250, dtype=torch.float64)
    """

    is_differentiable = False
    higher_is_better = False
    full_state_update = False
    plot_lower_bound = 0.0

    counts: Tensor
    offsets: Tensor
    # How many batches came in, and how many of their rows could not be counted.
    tally: Tensor

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        measure: str | Callable[..., float] = "smooth_ece",
        options: Mapping[str, Any] | None = None,
        num_classes: int | None = None,
        from_logits: bool = False,
        ignore_index: int | None = None,
        validate_args: bool = True,
        n_cells: int = DEFAULT_CELLS,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if ignore_index is not None and not isinstance(ignore_index, int):
            raise CalibrantError(
                "must be a whole number", argument="ignore_index", value=ignore_index
            )
        from_logits = validation.as_flag(from_logits, "from_logits")
        self._task = _read_task(task, num_classes, from_logits)
        info = find_measure(measure, answered_by_sketches())
        self.options = dict(options or {})
        info.read(self.options)  # refuses options that there are not, and what they may not be
        self.measure = info.name
        self._cells = Sketch(n_cells, info.sketch or "probability").cells
        self._tensor_cells = TensorCells(self._cells)
        self.ignore_index = ignore_index
        self.validate_args = validation.as_flag(validate_args, "validate_args")
        size = self._cells.size
        home = _home(self.device)
        for name, shape, dtype in (
            ("counts", (2, size), torch.int64),
            ("offsets", (2, 2, size), torch.float64),
            ("tally", (2,), torch.int64),
        ):
            state = torch.zeros(shape, dtype=dtype, device=home)
            self.add_state(name, state, dist_reduce_fx="sum")

    @property
    def scale(self) -> Scale:
        """The scale of the sketch."""
        return self._cells.scale

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Take in a batch; where it is refused, none of it has been taken in."""
        preds, target = _at_home(preds, "preds"), _at_home(target, "target")
        preds, target = self._task.flatten(preds, target)
        ignored = _equals(target, self.ignore_index)
        score, outcome = self._task.reduce(preds, target)
        sound = (score >= 0) & (score <= 1) & self._task.is_target(target)
        if self.validate_args:
            sound = sound & self._task.is_prediction(preds)
            if not bool((sound | ignored).all()):
                self._task.check(preds, target, ignored)
        self._make_writable()
        counted = sound & ~ignored
        add_rows(self._tensor_cells, self.counts, self.offsets, score, outcome, counted)
        self.tally[0] += 1
        self.tally[1] += (~(sound | ignored)).sum()

    def compute(self) -> Tensor:
        """Return the error as a float64 number; nan where every row was ignored.

        Before any batch came in, it raises :class:`calibrant.SketchError`.
        """
        sketch = self.sketch()
        # An error here would stop a training run at the first batch that is all padding.
        is_void = sketch.n == 0 and int(self.tally[0]) > 0
        function = measures()[self.measure].function
        value = float("nan") if is_void else function(sketch, **self.options)
        return torch.tensor(value, dtype=torch.float64, device=self.counts.device)

    def sketch(self) -> Sketch:
        """Return the rows of this process as a :class:`calibrant.Sketch` of its own.

        Within ``with metric.sync_context():`` it holds the rows of all processes.
        """
        if refused := int(self.tally[1]):
            raise CalibrantError(
                "must lie in [0, 1] and {target} be a class",
                argument="preds",
                value=refused,
                found="{value} invalid rows",
                hint="{validate_args}=True tells which",
            )
        first, second = self.offsets.cpu().numpy()
        counts = self.counts.cpu().numpy().copy()
        return Sketch.of_table(self._cells, CellTable(counts, first + 1j * second))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one value or several, as every metric of torchmetrics does."""
        return self._plot(val, ax)

    def _make_writable(self) -> None:
        """Own the state: made within torch.inference_mode, it cannot be changed outside."""
        if self.counts.is_inference() and not torch.is_inference_mode_enabled():
            for name in self._defaults:
                setattr(self, name, getattr(self, name).clone())

    def _load_from_state_dict(
        self, state_dict: dict[str, Any], prefix: str, *args: Any, **kwargs: Any
    ) -> None:
        for name in self._defaults:
            state = getattr(self, name)
            loaded = state_dict.get(prefix + name, state)
            if loaded.shape != state.shape:
                raise CalibrantError(
                    "must have shape {shape}",
                    argument=name,
                    value=tuple(loaded.shape),
                    hint="a state fits metrics of the same {n_cells}",
                    shape=tuple(state.shape),
                )
            # A copy, because states change in place and the caller's are not ours to change.
            setattr(self, name, loaded.to(state, copy=True))
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Self:
        """Move the state with the module, but never change its dtype."""
        super()._apply(fn, exclude_state=[*self._defaults, *exclude_state])
        home = _home(self.device)
        for name in self._defaults:
            state = getattr(self, name).to(home)
            setattr(self, name, state)
            self._defaults[name] = torch.zeros_like(state)
        return self


def _read_task(task: str, num_classes: int | None, from_logits: bool) -> Task:
    validation.check_choice(task, "task", ("binary", "multiclass"))
    if task == "binary":
        if num_classes is not None:
            raise CalibrantError(
                "is for {task}='multiclass'", argument="num_classes", value=num_classes
            )
        return Binary(from_logits)
    if num_classes is None or validation.as_count(num_classes, "num_classes") < 2:
        raise CalibrantError(
            "must be at least 2 for {task}='multiclass'", argument="num_classes", value=num_classes
        )
    return Multiclass(num_classes, from_logits)


def _equals(target: Tensor, value: int | None) -> Tensor:
    if value is None:
        return torch.zeros_like(target, dtype=torch.bool)
    return target == value


def _at_home(values: Tensor, name: str) -> Tensor:
    if not isinstance(values, Tensor):
        raise CalibrantError("must be a tensor", argument=name, value=type(values))
    return values.detach().to(_home(values.device))


def _home(device: torch.device) -> torch.device:
    """Return where tensors of this device are counted."""
    return torch.device("cpu") if device.type in _WITHOUT_FLOAT64 else device


# The metrics: what each one measures of the sketch that is their state.


class SmoothCalibrationError(SketchMetric):
    """The smooth calibration error, smECE, of all batches; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`.
    bandwidth
        As in :func:`calibrant.smooth_ece`, whose value for all rows is given to within 1e-6 where
        it is at least 0.01.

    Examples
    --------
    >>> import torch
    >>> metric = SmoothCalibrationError()
    >>> metric.update(torch.tensor([0.25, 0.5]), torch.tensor([0, 1]))
    >>> metric.update(torch.tensor([0.75, 1.0]), torch.tensor([1, 1]))
    >>> round(float(metric.compute()), 6)
    0.171062
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        bandwidth: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, measure="smooth_ece", options={"bandwidth": bandwidth}, **kwargs)


class BinnedCalibrationError(SketchMetric):
    """The expected calibration error, ECE, of all batches in uniform bins; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`.
    n_bins
        The number of bins, which must divide `n_cells`.
    norm
        "l1" mean, "l2" root mean square or "max" over bins.

    Notes
    -----
    Exactly :func:`calibrant.ece` of all rows: p = 1 belongs to the last bin, scores on an edge to
    the bin above it, and float16 predictions are counted as the numbers that they are.

    Examples
    --------
    >>> import torch
    >>> metric = BinnedCalibrationError(n_bins=10)
    >>> metric(torch.tensor([0.75, 1.0]), torch.tensor([1, 0]))
    tensor(0.6250, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        n_bins: int = 15,
        norm: Literal["l1", "l2", "max"] = "l1",
        **kwargs: Any,
    ) -> None:
        options = {"n_bins": validation.as_bins(n_bins), "norm": norm}
        super().__init__(task, measure="ece", options=options, **kwargs)
        if self._cells.n_cells % n_bins:
            raise CalibrantError(
                "must divide {n_cells}, {n_sketched}",
                argument="n_bins",
                value=n_bins,
                n_sketched=self._cells.n_cells,
            )


class CumulativeCalibrationError(SketchMetric):
    """The cumulative calibration error, ECCE, of all batches; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`.
    statistic
        "max": :func:`calibrant.ecce_mad`. "range": :func:`calibrant.ecce_r`.
    normalize
        Divide by sigma_n, the noise of calibrated predictions.

    Examples
    --------
    >>> import torch
    >>> metric = CumulativeCalibrationError(statistic="range")
    >>> metric(torch.tensor([0.5, 0.625, 0.75, 0.75]), torch.tensor([0, 1, 1, 1]))
    tensor(0.2188, dtype=torch.float64)
    """

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        statistic: Literal["max", "range"] = "max",
        normalize: bool = False,
        **kwargs: Any,
    ) -> None:
        validation.check_choice(statistic, "statistic", ("max", "range"))
        measure = "ecce_mad" if statistic == "max" else "ecce_r"
        super().__init__(task, measure=measure, options={"normalize": normalize}, **kwargs)


class LogitSmoothedCalibrationError(SketchMetric):
    """The logit-smoothed calibration error, LS-ECE, of all batches; 0 is perfect.

    Parameters
    ----------
    task, num_classes, from_logits, ignore_index, validate_args, n_cells, **kwargs
        As in :class:`SketchMetric`; the sketch is on the logit scale.
    sigma
        The scale of the Gaussian noise on the logits, as in :func:`calibrant.logit_smoothed_ece`.

    Examples
    --------
    >>> import torch
    >>> metric = LogitSmoothedCalibrationError()
    >>> metric(torch.tensor([0.25, 0.25, 0.75, 0.75]), torch.tensor([0, 1, 0, 1]))
    tensor(0.2498, dtype=torch.float64)
    """

    plot_upper_bound = 1.0

    def __init__(
        self,
        task: Literal["binary", "multiclass"] = "binary",
        *,
        sigma: float = 1 / 15,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, measure="logit_smoothed_ece", options={"sigma": sigma}, **kwargs)
