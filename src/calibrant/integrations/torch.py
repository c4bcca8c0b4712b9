"""Calibration measures as torchmetrics metrics, of constant size and exact across processes.

Their state is that of a :class:`calibrant.Sketch`: the number of rows and float64 sums for each
cell of scores, 2.4 MB for any number of rows. States merge by addition, so that distributed
training synchronises them exactly: every process has the state of one process with all rows.

Adding rows does not synchronise with the device: rows that do not count are added as zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self, get_args

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
from calibrant.errors import CalibrantError, required
from calibrant.measures.registry import answered_by_sketches, find_measure, measures

with required("calibrant.integrations.torch", "torch", "torch", "torchmetrics"):
    import torch
    from torch import Tensor
    from torchmetrics import Metric

__all__ = [
    "BinnedCalibrationError",
    "CumulativeCalibrationError",
    "LogitSmoothedCalibrationError",
    "SketchMetric",
    "SmoothCalibrationError",
]

Task = Literal["binary", "multiclass"]
# Tensors of devices without float64 are counted on the CPU, where the state stays.
_WITHOUT_FLOAT64 = ("mps",)


class SketchMetric(Metric):
    """Any measure that can be computed from a sketch, which is the state of the metric.

    Parameters
    ----------
    task : {"binary", "multiclass"}
        "binary": `preds` are probabilities of the outcome 1 and `target` is 0 or 1, both of the
        same shape. "multiclass": `preds` has shape (n, C, ...) and `target` holds classes, shape
        (n, ...); the score is the highest probability, and the outcome whether its class, the first
        of equals, is right.
    measure : str or callable
        Name of the measure, such as "density_ece", or the function itself.
    options : mapping, optional
        Its options by name, such as ``{"bandwidth": 0.1}``.
    num_classes : int, optional
        Number of classes C of the multiclass task.
    from_logits : bool
        Whether `preds` are logits, whose sigmoid or softmax, in float64, are the probabilities.
        Otherwise values outside [0, 1] are refused: unlike metrics of torchmetrics, this one does
        not decide batch by batch whether it was given logits.
    ignore_index : int, optional
        Value of `target` whose rows are ignored, whatever their predictions.
    validate_args : bool
        Whether to check the values of every batch and name the first invalid row, which
        synchronises with the device once per batch. Otherwise invalid rows are left out and
        counted, and `compute` raises if there are any; sums of class probabilities are not checked.
    n_cells : int
        Number of cells of the :class:`calibrant.Sketch`.
    **kwargs
        Parameters of ``torchmetrics.Metric``, such as `sync_on_compute` or `process_group`.

    Notes
    -----
    Predictions of any float type are converted to float64, without rounding, on the device that
    holds them; those on MPS, which has no float64, are moved to the CPU, where the state stays.
    Casting a module to another dtype does not change the state.

    A call of the metric itself (`forward`) also computes the measure of the batch; `update` is
    cheaper. Metrics in one ``MetricCollection`` that differ only in the measure share one state.

    See Also
    --------
    calibrant.Sketch : The same summary outside of torch.

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
    n_batches: Tensor
    n_invalid: Tensor

    def __init__(
        self,
        task: Task = "binary",
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
        info.read(self.options)  # refuses invalid options
        self.measure = info.name
        self._cells = Sketch(n_cells, info.sketch or "probability").cells
        self._tensor_cells = _TensorCells(self._cells)
        self.ignore_index = ignore_index
        self.validate_args = validation.as_flag(validate_args, "validate_args")
        size = self._cells.size
        device = _counting_device(self.device)
        for name, shape, dtype in (
            ("counts", (2, size), torch.int64),
            ("offsets", (2, 2, size), torch.float64),
            ("n_batches", (), torch.int64),
            ("n_invalid", (), torch.int64),
        ):
            state = torch.zeros(shape, dtype=dtype, device=device)
            self.add_state(name, state, dist_reduce_fx="sum")

    @property
    def scale(self) -> Scale:
        """The scale of the sketch."""
        return self._cells.scale

    def update(self, preds: Tensor, target: Tensor) -> None:
        """Add a batch, all of it or, where it is refused, nothing.

        Parameters
        ----------
        preds : Tensor
            Probabilities, or logits with `from_logits`.
        target : Tensor
            Outcomes or classes.
        """
        preds, target = _to_counting_device(preds, "preds"), _to_counting_device(target, "target")
        preds, target = self._task.flatten(preds, target)
        ignored = torch.zeros_like(target, dtype=torch.bool)
        if self.ignore_index is not None:
            ignored = target == self.ignore_index
        score, outcome = self._task.binary_problem(preds, target)
        valid = (score >= 0) & (score <= 1) & self._task.valid_targets(target)
        if self.validate_args:
            valid = valid & self._task.valid_predictions(preds)
            if not bool((valid | ignored).all()):
                self._task.refuse_invalid(preds, target, ignored)
        if self.counts.is_inference() and not torch.is_inference_mode_enabled():
            # A state made within torch.inference_mode cannot be changed outside.
            for name in self._defaults:
                setattr(self, name, getattr(self, name).clone())
        counted = valid & ~ignored
        self._tensor_cells.add(self.counts, self.offsets, score, outcome, counted)
        self.n_batches += 1
        self.n_invalid += (~(valid | ignored)).sum()

    def compute(self) -> Tensor:
        """Return the value of the measure in float64; nan where every row was ignored.

        Raises
        ------
        SketchError
            Before the first batch.
        """
        sketch = self.sketch()
        # An error would stop a training run at a first batch that is all padding.
        all_ignored = sketch.n == 0 and int(self.n_batches) > 0
        function = measures()[self.measure].function
        value = float("nan") if all_ignored else function(sketch, **self.options)
        return torch.tensor(value, dtype=torch.float64, device=self.counts.device)

    def sketch(self) -> Sketch:
        """Return a copy of the state as a :class:`calibrant.Sketch` of the rows of this process.

        Within ``with metric.sync_context():`` it has the rows of all processes.
        """
        if n_invalid := int(self.n_invalid):
            raise CalibrantError(
                "must lie in [0, 1] and {target} be a class",
                argument="preds",
                value=n_invalid,
                found="{value} invalid rows",
                hint="{validate_args}=True names the first",
            )
        first, second = self.offsets.cpu().numpy()
        counts = self.counts.cpu().numpy().copy()
        return Sketch.of_table(self._cells, CellTable(counts, first + 1j * second))

    def plot(self, val: Any = None, ax: Any = None) -> Any:
        """Plot one value or several by torchmetrics."""
        return self._plot(val, ax)

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
                    hint="a state is loaded by metrics of the same {n_cells}",
                    shape=tuple(state.shape),
                )
            # A copy, because states change in place.
            setattr(self, name, loaded.to(state, copy=True))
            state_dict.pop(prefix + name, None)
        super()._load_from_state_dict(state_dict, prefix, *args, **kwargs)

    def _apply(self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ()) -> Self:
        """Move the state with the module without a change of its dtype."""
        super()._apply(fn, exclude_state=[*self._defaults, *exclude_state])
        device = _counting_device(self.device)
        for name in self._defaults:
            state = getattr(self, name).to(device)
            setattr(self, name, state)
            self._defaults[name] = torch.zeros_like(state)
        return self


class SmoothCalibrationError(SketchMetric):
    """The smooth calibration error, smECE, of all batches; 0 is perfect.

    Parameters
    ----------
    task : {"binary", "multiclass"}
        Whether `preds` are probabilities of the outcome 1, or have one column per class.
    bandwidth : float, optional
        Scale of the kernel; by default the one at which the smoothed error equals the scale.
    **kwargs
        Other parameters of :class:`SketchMetric`, such as `num_classes` and `from_logits`.

    Notes
    -----
    Within 1e-6 of :func:`calibrant.smooth_ece` of all rows where that is at least 0.01.

    See Also
    --------
    calibrant.smooth_ece : The same error of arrays.

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
        task: Task = "binary",
        *,
        bandwidth: float | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, measure="smooth_ece", options={"bandwidth": bandwidth}, **kwargs)


class BinnedCalibrationError(SketchMetric):
    """The expected calibration error, ECE, of all batches in uniform bins; 0 is perfect.

    Parameters
    ----------
    task : {"binary", "multiclass"}
        Whether `preds` are probabilities of the outcome 1, or have one column per class.
    n_bins : int
        Number of bins.

        It must divide `n_cells`.
    norm : {"l1", "l2", "max"}
        Mean, root mean square or maximum over the bins.
    **kwargs
        Other parameters of :class:`SketchMetric`, such as `num_classes` and `from_logits`.

    Notes
    -----
    Exactly :func:`calibrant.ece` of all rows: p = 1 belongs to the last bin, scores on an edge to
    the bin above it, and float16 predictions are not rounded.

    See Also
    --------
    calibrant.ece : The same error of arrays.

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
        task: Task = "binary",
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
    task : {"binary", "multiclass"}
        Whether `preds` are probabilities of the outcome 1, or have one column per class.
    statistic : {"max", "range"}
        Maximum absolute cumulative difference, or its range.
    normalize : bool
        Whether to divide by sigma_n, the standard deviation under perfect calibration.
    **kwargs
        Other parameters of :class:`SketchMetric`, such as `num_classes` and `from_logits`.

    See Also
    --------
    calibrant.ecce_mad, calibrant.ecce_r : The same errors of arrays.

    Examples
    --------
    >>> import torch
    >>> metric = CumulativeCalibrationError(statistic="range")
    >>> metric(torch.tensor([0.5, 0.625, 0.75, 0.75]), torch.tensor([0, 1, 1, 1]))
    tensor(0.2188, dtype=torch.float64)
    """

    def __init__(
        self,
        task: Task = "binary",
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

    The sketch is on the logit scale.

    Parameters
    ----------
    task : {"binary", "multiclass"}
        Whether `preds` are probabilities of the outcome 1, or have one column per class.
    sigma : float
        Scale of the Gaussian noise on the logits.
    **kwargs
        Other parameters of :class:`SketchMetric`, such as `num_classes` and `from_logits`.

    See Also
    --------
    calibrant.logit_smoothed_ece : The same error of arrays.

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
        task: Task = "binary",
        *,
        sigma: float = 1 / 15,
        **kwargs: Any,
    ) -> None:
        super().__init__(task, measure="logit_smoothed_ece", options={"sigma": sigma}, **kwargs)


def _counting_device(device: torch.device) -> torch.device:
    """Return the device on which tensors of a device are counted."""
    return torch.device("cpu") if device.type in _WITHOUT_FLOAT64 else device


def _to_counting_device(values: Tensor, name: str) -> Tensor:
    if not isinstance(values, Tensor):
        raise CalibrantError("must be a tensor", argument=name, value=type(values))
    return values.detach().to(_counting_device(values.device))


def _read_task(task: str, num_classes: int | None, from_logits: bool) -> _Binary | _Multiclass:
    validation.check_choice(task, "task", get_args(Task))
    rule = "is for {task}='multiclass'"
    if task == "binary" and num_classes is None:
        return _Binary(from_logits)
    if task == "multiclass":
        if num_classes is not None and validation.as_count(num_classes, "num_classes") >= 2:
            return _Multiclass(num_classes, from_logits)
        rule = "must be at least 2 for {task}='multiclass'"
    raise CalibrantError(rule, argument="num_classes", value=num_classes)


@dataclass(frozen=True)
class _Binary:
    """One probability per row, that of the outcome 1."""

    from_logits: bool

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions and targets with one axis, or refuse their shapes."""
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

    def binary_problem(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the float64 probabilities, and whether the target is 1."""
        score = preds.double()
        return score.sigmoid() if self.from_logits else score, target == 1

    def valid_targets(self, target: Tensor) -> Tensor:
        """Return which targets are 0 or 1."""
        return (target == 0) | (target == 1)

    def valid_predictions(self, preds: Tensor) -> Tensor:
        """Return that all rows are valid as far as their scores are."""
        return torch.ones_like(preds, dtype=torch.bool)

    def refuse_invalid(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Raise for the first invalid row that is not ignored."""
        target = target.masked_fill(ignored, 0)
        hint = (
            "soft labels are for calibrant.Sketch"
            if target.is_floating_point()
            else "give a value to leave out as ignore_index, or give task='multiclass'"
        )
        bad = as_array(~self.valid_targets(target), "target")
        validation.refuse(as_array(target, "target"), bad, "target", "must be 0 or 1", hint)
        preds = preds.masked_fill(ignored, 0)
        if self.from_logits:
            validation.check_logits(as_array(preds, "preds"), "preds")
        else:
            _check_probabilities(preds)


@dataclass(frozen=True)
class _Multiclass:
    """One column of probabilities per class; the class of the highest is predicted."""

    n_classes: int
    from_logits: bool

    def flatten(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return predictions of shape (n, C) and n targets, or refuse their shapes."""
        _check_floating(preds)
        if target.is_floating_point():
            rule = "must hold classes as whole numbers"
            raise CalibrantError(rule, argument="target", value=target.dtype)
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

    def binary_problem(self, preds: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
        """Return the highest probability, and whether its class, the first of equals, is right."""
        prob = preds.softmax(dim=1, dtype=torch.float64) if self.from_logits else preds
        top, predicted = prob.max(dim=1)
        return top.double(), predicted == target

    def valid_targets(self, target: Tensor) -> Tensor:
        """Return which targets are classes."""
        return (target >= 0) & (target < self.n_classes)

    def valid_predictions(self, preds: Tensor) -> Tensor:
        """Return which rows are not negative anywhere and sum to 1."""
        if self.from_logits:
            return torch.ones_like(preds[:, 0], dtype=torch.bool)
        excess = preds.sum(dim=1, dtype=torch.float64) - 1
        return (preds.amin(dim=1) >= 0) & (excess.abs() <= validation.ROW_SUM_TOLERANCE)

    def refuse_invalid(self, preds: Tensor, target: Tensor, ignored: Tensor) -> None:
        """Raise for the first invalid row that is not ignored."""
        target = target.masked_fill(ignored, 0)
        rule = f"must be a class from 0 to {self.n_classes - 1}"
        hint = "give a value to leave out as {ignore_index}"
        bad = as_array(~self.valid_targets(target), "target")
        validation.refuse(as_array(target, "target"), bad, "target", rule, hint)
        preds = preds.masked_fill(ignored[:, None], 1 / self.n_classes)
        if self.from_logits:
            # -inf excludes a class, and is valid unless all are excluded.
            invalid = preds.softmax(dim=1, dtype=torch.float64).isnan().any(dim=1).nonzero()
            first = int(invalid[0])
            raise CalibrantError(
                "must have rows with a softmax",
                argument="preds",
                value=preds[first].tolist(),
                found="nan, inf or nothing but -inf",
                position=first,
                count=len(invalid),
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


def _check_probabilities(preds: Tensor) -> None:
    values = as_array(preds, "preds")
    validation.check_finite(values, "preds")
    hint = "{from_logits}=True takes logits"
    validation.refuse(values, (values < 0) | (values > 1), "preds", "must lie in [0, 1]", hint)


class _TensorCells:
    """The cells of a sketch for tensors."""

    def __init__(self, cells: Cells) -> None:
        self.cells = cells
        self._edges = torch.tensor(cells.edges)

    def locate(self, p: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cell of each float64 score, and its offset from the centre in cell widths."""
        if self._edges.device != p.device:
            self._edges = self._edges.to(p.device)
        edges, n = self._edges, self.cells.n_cells
        position = p * n
        if self.cells.scale == "logit":
            position = (p.logit() + LOGIT_REACH) / self.cells.width
        # What arithmetic finds is corrected by comparison with the edges, as in sketch_cells.
        cell = position.nan_to_num().clamp(0, n - 1).long()
        cell = cell - (p < edges[cell]).long()
        cell = (cell + (p >= edges[cell + 1]).long()).clamp(0, n - 1)
        offset = position - cell - 0.5
        if self.cells.scale == "probability":
            return cell, offset
        below, above = p < edges[0], p >= edges[-1]
        cell = cell.where(~below, n + BELOW - (p == 0).long() * (BELOW - AT_ZERO))
        cell = cell.where(~above, n + ABOVE + (p == 1).long() * (AT_ONE - ABOVE))
        return cell, offset.where(~(below | above), 0.0)

    def add(
        self, counts: Tensor, offsets: Tensor, p: Tensor, outcome: Tensor, counted: Tensor
    ) -> None:
        """Add those rows that count to a table in place; the scores of others may be anything.

        `counts` has the number of rows by outcome and cell, `offsets` the sums of d and of d^2.
        """
        cell, offset = self.locate(p.where(counted, 0.5))
        index = cell + counts.shape[1] * outcome.long()
        offset = offset.where(counted, 0.0)
        counts.view(-1).index_add_(0, index, counted.long())
        offsets[0].view(-1).index_add_(0, index, offset)
        offsets[1].view(-1).index_add_(0, index, offset * offset)
