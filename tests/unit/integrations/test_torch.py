"""The torchmetrics metrics: a sketch as state, and its measures as values."""

import importlib
import pickle
import sys

import numpy as np
import pytest

from calibrant import (
    CalibrantError,
    MissingDependencyError,
    Sketch,
    SketchError,
    density_ece,
    ecce_mad,
    ecce_r,
    ece,
    logit_smoothed_ece,
    smooth_ece,
)

torch = pytest.importorskip("torch")
torchmetrics = pytest.importorskip("torchmetrics")

from calibrant.integrations.torch import (  # noqa: E402
    BinnedCalibrationError,
    CumulativeCalibrationError,
    LogitSmoothedCalibrationError,
    SketchMetric,
    SmoothCalibrationError,
)
from calibrant.measures.registry import answered_by_sketches  # noqa: E402
from tests.tolerances import ROUNDING  # noqa: E402

# Places in cells: scores times 50 400, rounded by 4e-12, or not where the product is fused.
IN_CELLS = 1e-10
FLOATS = [torch.float16, torch.bfloat16, torch.float32, torch.float64]


def rows(n, seed=0):
    """Return overconfident predictions and their outcomes."""
    rng = np.random.default_rng(seed)
    p = rng.beta(0.7, 0.7, n)
    y = rng.random(n) < 0.1 + 0.8 * p
    return torch.tensor(p), torch.tensor(y.astype(np.int64))


def class_rows(n, n_classes, seed=0):
    """Return class logits and classes drawn from a flatter softmax."""
    generator = torch.Generator().manual_seed(seed)
    logits = 3 * torch.randn(n, n_classes, generator=generator, dtype=torch.float64)
    target = torch.multinomial((logits / 2).softmax(1), 1, generator=generator)[:, 0]
    return logits, target


def as_numpy(preds):
    return preds.double().numpy()


class TestCells:
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_state_is_that_of_a_sketch(self, dtype):
        p, y = rows(20_000)
        p = p.to(dtype)
        metric = SmoothCalibrationError()
        for batch in zip(p.split(3001), y.split(3001), strict=True):
            metric.update(*batch)
        expected = Sketch().update(y.numpy(), as_numpy(p))
        np.testing.assert_array_equal(metric.counts.numpy(), expected.table.counts)
        sums = np.stack((expected.table.offsets.real, expected.table.offsets.imag))
        np.testing.assert_allclose(metric.offsets.numpy(), sums, rtol=0, atol=IN_CELLS)
        assert metric.sketch().allclose(expected)
        assert (metric.counts.dtype, metric.offsets.dtype) == (torch.int64, torch.float64)

    @pytest.mark.parametrize("metric", [SmoothCalibrationError, LogitSmoothedCalibrationError])
    @pytest.mark.parametrize("n_cells", [15, 100, 50_400])
    def test_scores_on_edges(self, metric, n_cells):
        metric = metric(n_cells=n_cells)
        expected = Sketch(n_cells, metric.scale)
        edges = np.concatenate([expected.cells.edges, [0.0, 5e-324, np.nextafter(1, 0), 1.0]])
        p = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 1)])
        p = p[p <= 1]
        y = np.arange(len(p)) % 2
        expected.update(y, p)
        metric.update(torch.tensor(p), torch.tensor(y))
        np.testing.assert_array_equal(metric.counts.numpy(), expected.table.counts)
        assert metric.sketch().allclose(expected)

    def test_logit_smoothed_error_of_all_batches(self):
        p, y = rows(5000)
        metric = LogitSmoothedCalibrationError(sigma=0.1)
        for batch in zip(p.split(1000), y.split(1000), strict=True):
            metric.update(*batch)
        expected = logit_smoothed_ece(y.numpy(), p.numpy(), sigma=0.1)
        assert float(metric.compute()) == pytest.approx(expected, abs=1e-6)

    def test_by_hand(self):
        metric = BinnedCalibrationError(n_bins=2, n_cells=4)
        metric.update(torch.tensor([0.0, 0.25, 0.375, 1.0]), torch.tensor([0, 1, 1, 0]))
        assert metric.counts.tolist() == [[1, 0, 0, 1], [0, 2, 0, 0]]
        assert metric.offsets[0].tolist() == [[-0.5, 0, 0, 0.5], [0, -0.5, 0, 0]]
        assert metric.offsets[1].tolist() == [[0.25, 0, 0, 0.25], [0, 0.25, 0, 0]]
        # Bins: mean p 5/24 against 2/3 with weight 3/4, and 1 against 0 with weight 1/4.
        assert float(metric.compute()) == pytest.approx((11 / 24) * 0.75 + 0.25, abs=ROUNDING)

    def test_a_sketch_of_its_own(self, tmp_path):
        metric = SmoothCalibrationError()
        metric.update(*rows(100))
        sketch = metric.sketch()
        metric.update(*rows(50, seed=1))
        assert (sketch.n, metric.sketch().n) == (100, 150)
        sketch.save(tmp_path / "first")
        assert Sketch.load(tmp_path / "first") == sketch

    def test_any_shape(self):
        p, y = rows(60)
        flat, shaped = SmoothCalibrationError(), SmoothCalibrationError()
        flat.update(p, y)
        shaped.update(p.reshape(3, 4, 5), y.reshape(3, 4, 5))
        assert shaped.sketch().allclose(flat.sketch())


class TestValues:
    p, y = rows(5000)

    def value(self, metric, dtype=torch.float64):
        for batch in zip(self.p.to(dtype).split(999), self.y.split(999), strict=True):
            metric.update(*batch)
        value = metric.compute()
        assert (value.dtype, value.shape) == (torch.float64, ())
        return float(value)

    @pytest.mark.parametrize("norm", ["l1", "l2", "max"])
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_binned(self, norm, dtype):
        found = self.value(BinnedCalibrationError(n_bins=15, norm=norm), dtype)
        exact = ece(self.y.numpy(), as_numpy(self.p.to(dtype)), n_bins=15, norm=norm)
        assert found == pytest.approx(exact, abs=1e-12)

    @pytest.mark.parametrize("bandwidth", [None, 0.1])
    def test_smooth(self, bandwidth):
        found = self.value(SmoothCalibrationError(bandwidth=bandwidth))
        exact = smooth_ece(self.y.numpy(), self.p.numpy(), bandwidth=bandwidth)
        assert exact > 0.01
        assert found == pytest.approx(exact, abs=1e-6)

    @pytest.mark.parametrize("normalize", [False, True])
    @pytest.mark.parametrize(("statistic", "measure"), [("max", ecce_mad), ("range", ecce_r)])
    def test_cumulative(self, statistic, measure, normalize):
        metric = CumulativeCalibrationError(statistic=statistic, normalize=normalize)
        found = self.value(metric)
        exact = measure(self.y.numpy(), self.p.numpy(), normalize=normalize)
        # Rows within a cell are pooled: the maximum may differ by 1/n, in units of the noise.
        tolerance = 2 / 5000 * (exact / measure(self.y.numpy(), self.p.numpy()))
        assert found == pytest.approx(exact, abs=tolerance)
        on_sketch = measure(Sketch().update(self.y.numpy(), self.p.numpy()), normalize=normalize)
        assert found == pytest.approx(on_sketch, abs=1e-12)

    @pytest.mark.parametrize("norm", ["l1", "l2", "max"])
    def test_agrees_with_torchmetrics_off_the_edges(self, norm):
        peer = torchmetrics.classification.BinaryCalibrationError(n_bins=15, norm=norm)
        on_edge = (self.p * 15 - (self.p * 15).round()).abs() < 1e-6
        p, y = self.p[~on_edge].float(), self.y[~on_edge]
        ours = BinnedCalibrationError(n_bins=15, norm=norm)
        assert float(ours(p, y)) == pytest.approx(float(peer(p, y)), abs=1e-5)

    def test_agrees_with_torchmetrics_on_classes(self):
        logits, target = class_rows(2000, 5)
        prob = logits.softmax(1).float()
        peer = torchmetrics.classification.MulticlassCalibrationError(num_classes=5, n_bins=15)
        ours = BinnedCalibrationError("multiclass", num_classes=5)
        assert float(ours(prob, target)) == pytest.approx(float(peer(prob, target)), abs=1e-5)

    def test_a_prediction_of_one_is_in_the_last_bin(self):
        metric = BinnedCalibrationError(n_bins=10)
        value = metric(torch.tensor([0.95, 1.0], dtype=torch.float64), torch.tensor([1, 0]))
        assert float(value) == pytest.approx(0.475, abs=1e-12)

    def test_many_half_precision_rows(self):
        # Counts and sums kept in half precision would stop growing at 2048 rows.
        p = torch.full((300_000,), 0.25, dtype=torch.float16)
        y = torch.zeros(300_000, dtype=torch.int64)
        y[: 300_000 // 2] = 1
        assert float(BinnedCalibrationError()(p, y)) == pytest.approx(0.25, abs=1e-12)


class TestMeasures:
    @pytest.mark.parametrize("info", answered_by_sketches(), ids=lambda info: info.name)
    def test_every_measure_that_a_sketch_can_answer(self, info):
        p, y = rows(2000)
        sketch = Sketch(scale=info.sketch).update(y.numpy(), p.numpy())
        for measure in (info.name, info.function):
            metric = SketchMetric(measure=measure)
            metric.update(p, y)
            assert float(metric.compute()) == pytest.approx(info.function(sketch), abs=IN_CELLS)

    def test_options(self):
        p, y = rows(2000)
        metric = SketchMetric(measure="density_ece", options={"bandwidth": 0.1})
        metric.update(p, y)
        sketch = Sketch().update(y.numpy(), p.numpy())
        expected = density_ece(sketch, bandwidth=0.1)
        assert float(metric.compute()) == pytest.approx(expected, abs=IN_CELLS)
        with pytest.raises(CalibrantError, match="density_ece has no option 'n_bins'"):
            SketchMetric(measure="density_ece", options={"n_bins": 10})
        with pytest.raises(CalibrantError, match=r"measure must be one of smooth_ece, .*brier"):
            SketchMetric(measure="weak_calibration_error")


class TestTasks:
    @pytest.mark.parametrize("dtype", FLOATS)
    def test_multiclass_is_confidence(self, dtype):
        logits, target = class_rows(3000, 7)
        prob = logits.softmax(1).to(dtype)
        metric = BinnedCalibrationError("multiclass", num_classes=7)
        metric.update(prob, target)
        # Half precision makes ties, which go to the first column.
        exact = ece(target.numpy(), as_numpy(prob), multiclass="confidence")
        assert float(metric.compute()) == pytest.approx(exact, abs=1e-12)

    def test_two_classes_are_not_the_binary_task(self):
        logits, target = class_rows(300, 2)
        prob = logits.softmax(1)
        metric = BinnedCalibrationError("multiclass", num_classes=2)
        exact = ece(target.numpy(), prob.numpy(), multiclass="confidence")
        assert float(metric(prob, target)) == pytest.approx(exact, abs=1e-12)

    def test_classes_of_pixels(self):
        logits, target = class_rows(24, 3)
        prob = logits.softmax(1)
        flat = SmoothCalibrationError("multiclass", num_classes=3)
        image = SmoothCalibrationError("multiclass", num_classes=3)
        flat.update(prob, target)
        image.update(prob.reshape(2, 3, 4, 3).movedim(-1, 1), target.reshape(2, 3, 4))
        assert image.sketch().allclose(flat.sketch())

    def test_binary_logits(self):
        p, y = rows(500)
        metric = SmoothCalibrationError(from_logits=True)
        metric.update(torch.logit(p), y)
        metric.update(torch.tensor([-torch.inf, torch.inf]), torch.tensor([0, 1]))
        expected = Sketch().update(y.numpy(), torch.logit(p).sigmoid().numpy())
        assert metric.sketch().allclose(expected.update([0, 1], [0.0, 1.0]))

    def test_half_precision_logits_are_not_rounded_again(self):
        logit = torch.tensor([6.0], dtype=torch.float16)
        metric = SmoothCalibrationError(from_logits=True)
        metric.update(logit, torch.tensor([1]))
        assert metric.sketch().allclose(Sketch().update([1], [1 / (1 + np.exp(-6))]))

    def test_class_logits(self):
        logits, target = class_rows(500, 4)
        logits[0, 0] = -torch.inf
        by_logits = BinnedCalibrationError("multiclass", num_classes=4, from_logits=True)
        by_logits.update(logits, target)
        by_prob = BinnedCalibrationError("multiclass", num_classes=4)
        by_prob.update(logits.softmax(1), target)
        assert by_logits.sketch().allclose(by_prob.sketch())

    @pytest.mark.parametrize("target_dtype", [torch.bool, torch.uint8, torch.int32, torch.float32])
    def test_targets_of_any_type(self, target_dtype):
        p, y = rows(50)
        expected = SmoothCalibrationError()
        expected.update(p, y)
        metric = SmoothCalibrationError()
        metric.update(p, y.to(target_dtype))
        assert metric.sketch().allclose(expected.sketch())

    @pytest.mark.parametrize("validate_args", [True, False])
    def test_ignored_rows_do_not_count(self, validate_args):
        p, y = rows(100)
        expected = SmoothCalibrationError()
        expected.update(p[10:], y[10:])
        y[:10] = -100
        p[:5] = torch.nan
        p[5:10] = 7.0
        metric = SmoothCalibrationError(ignore_index=-100, validate_args=validate_args)
        metric.update(p, y)
        assert metric.sketch().allclose(expected.sketch())

    def test_an_ignored_class(self):
        logits, target = class_rows(200, 3)
        prob = logits.softmax(1)
        kept = target != 1
        expected = BinnedCalibrationError("multiclass", num_classes=3)
        expected.update(prob[kept], target[kept])
        # Some of the ignored rows could be counted, others could not.
        prob[:100][~kept[:100]] = torch.nan
        metric = BinnedCalibrationError("multiclass", num_classes=3, ignore_index=1)
        metric.update(prob, target)
        assert metric.sketch().allclose(expected.sketch())

    def test_nothing_but_ignored_rows_have_no_error(self):
        metric = BinnedCalibrationError(ignore_index=-1)
        assert np.isnan(float(metric(torch.tensor([0.5]), torch.tensor([-1]))))
        assert np.isnan(float(metric.compute()))
        metric.update(torch.tensor([0.25]), torch.tensor([0]))
        assert float(metric.compute()) == pytest.approx(0.25, abs=ROUNDING)


class TestRefusals:
    @pytest.mark.parametrize(
        ("options", "preds", "target", "sentence"),
        [
            ({}, [0.5, 1.5], [0, 1], r"preds must lie in \[0, 1\]; got 1.5 at index 1: "),
            ({}, [-2.5, 3.5], [0, 1], "got -2.5 at index 0 .*: from_logits=True takes logits$"),
            ({}, [0.5, np.nan], [0, 1], "preds must be finite; got nan at index 1"),
            ({}, [0.5, 0.5], [0, 2], r"target must be 0 or 1; got 2 at index 1: give"),
            ({}, [0.5, 0.5], [-1, -1], r"got -1 at index 0 \(2 such values\): .*ignore_index"),
            ({}, [0.5, 0.5], [0.0, 0.3], "got 0.30.* at index 1: soft labels"),
            ({"ignore_index": -1}, [9.0, 9.0], [-1, 1], "got 9.0 at index 1: "),
            ({"from_logits": True}, [1.0, np.nan], [0, 1], "preds must be numbers; got nan at"),
            ({}, [[0.5, 0.5]], [0], r"the shape of target; got \(1, 2\) and \(1,\)"),
        ],
    )
    def test_binary(self, options, preds, target, sentence):
        metric = SmoothCalibrationError(**options)
        metric.update(torch.tensor([0.5]), torch.tensor([1]))
        with pytest.raises(CalibrantError, match=sentence):
            metric.update(torch.tensor(preds), torch.tensor(target))
        assert metric.sketch().n == 1

    @pytest.mark.parametrize(
        ("options", "preds", "target", "sentence"),
        [
            (
                {},
                [[0.5, 0.5, 0.5]],
                [0],
                "preds must have rows that sum to 1; got a sum of 1.5 at index 0",
            ),
            ({}, [[1.5, -0.5, 0.0]], [0], r"preds must lie in .* got 1.5 at row 0, column 0"),
            ({}, [[0.7, -0.1, 0.4]], [0], r"preds must lie in .* row 0, column 1"),
            ({}, [[np.nan, 0.5, 0.5]], [0], "preds must be finite"),
            ({}, [[0.2, 0.3, 0.5]], [3], "target must be a class from 0 to 2; got 3 at index 0"),
            ({}, [[0.2, 0.3, 0.5]], [0.0], "target must hold classes as whole"),
            ({}, [[0.2, 0.8]], [0], r"preds must have shape \(n, 3, ...\).* got \(1, 2\)"),
            ({}, [0.2, 0.3, 0.5], 0, r"got \(3,\) and \(\)"),
            ({"from_logits": True}, [[np.inf, 0, 0]], [0], "with a softmax; .* at index 0"),
        ],
    )
    def test_multiclass(self, options, preds, target, sentence):
        metric = SmoothCalibrationError("multiclass", num_classes=3, **options)
        with pytest.raises(CalibrantError, match=sentence):
            metric.update(torch.tensor(preds), torch.tensor(target))

    def test_swapped_arguments(self):
        with pytest.raises(CalibrantError, match=r"order is \(preds, target\)"):
            SmoothCalibrationError().update(torch.tensor([0, 1]), torch.tensor([0.2, 0.7]))

    def test_no_tensor(self):
        with pytest.raises(CalibrantError, match="preds must be a tensor; got list"):
            SmoothCalibrationError().update([0.5], torch.tensor([1]))

    @pytest.mark.parametrize("value", [1.5, -0.1, torch.nan, torch.inf])
    def test_without_validation_compute_refuses(self, value):
        metric = SmoothCalibrationError(validate_args=False)
        metric.update(torch.tensor([0.5, value, 0.5]), torch.tensor([0, 1, 7]))
        with pytest.raises(CalibrantError, match="got 2 invalid rows"):
            metric.compute()
        metric.reset()
        metric.update(torch.tensor([0.5]), torch.tensor([0]))
        assert metric.sketch().n == 1

    def test_nothing_yet(self):
        metric = SmoothCalibrationError()
        with (
            pytest.warns(UserWarning, match="before the ``update``"),
            pytest.raises(SketchError, match="the sketch is empty"),
        ):
            metric.compute()

    @pytest.mark.parametrize(
        ("make", "sentence"),
        [
            (lambda: SmoothCalibrationError("multilabel"), "task must be one of 'binary'"),
            (lambda: SmoothCalibrationError("multiclass"), "num_classes must be at least 2"),
            (lambda: SmoothCalibrationError("multiclass", num_classes=1), "at least 2"),
            (lambda: SmoothCalibrationError(num_classes=3), "num_classes is for task"),
            (lambda: SmoothCalibrationError(ignore_index="x"), "ignore_index must be a whole"),
            (lambda: SmoothCalibrationError(bandwidth=0), "bandwidth must be a positive"),
            (lambda: SmoothCalibrationError(n_cells=0), "n_cells must be a whole number"),
            (lambda: SmoothCalibrationError(from_logits="false"), "from_logits must be True or F"),
            (lambda: SmoothCalibrationError(validate_args=0), "validate_args must be True or Fal"),
            (lambda: CumulativeCalibrationError(normalize="no"), "normalize must be True or Fals"),
            (lambda: BinnedCalibrationError(norm="l3"), "norm must be one of"),
            (lambda: BinnedCalibrationError(n_bins=11), "n_bins must divide n_cells, 50400"),
            (lambda: BinnedCalibrationError(n_bins=0), "n_bins must be a whole number"),
            (lambda: CumulativeCalibrationError(statistic="sum"), "statistic must be one of"),
        ],
    )
    def test_options(self, make, sentence):
        with pytest.raises(CalibrantError, match=sentence):
            make()

    @pytest.mark.parametrize("missing", ["torch", "torchmetrics"])
    def test_a_missing_library(self, missing, monkeypatch):
        monkeypatch.setitem(sys.modules, missing, None)
        for name in [
            name for name in sys.modules if name.startswith("calibrant.integrations.torch")
        ]:
            monkeypatch.delitem(sys.modules, name)
        with pytest.raises(MissingDependencyError, match=rf"{missing}: pip install 'calibrant\[t"):
            importlib.import_module("calibrant.integrations.torch")


class TestLife:
    """What torchmetrics does with a metric."""

    def test_forward_gives_the_batch_and_keeps_the_whole(self):
        p, y = rows(300)
        metric = BinnedCalibrationError()
        batches = list(zip(p.split(100), y.split(100), strict=True))
        for batch_p, batch_y in batches:
            exact = ece(batch_y.numpy(), batch_p.numpy())
            assert float(metric(batch_p, batch_y)) == pytest.approx(exact, abs=1e-12)
        assert float(metric.compute()) == pytest.approx(ece(y.numpy(), p.numpy()), abs=1e-12)

    def test_predictions_with_gradients(self):
        p, y = rows(20)
        metric = SmoothCalibrationError()
        value = metric(p.requires_grad_(), y)
        assert not value.requires_grad
        assert not metric.offsets.requires_grad

    def test_reset(self):
        metric = SmoothCalibrationError()
        metric.update(*rows(20))
        metric.reset()
        assert metric.sketch() == Sketch()

    @pytest.mark.parametrize("copy", [lambda m: m.clone(), lambda m: pickle.loads(pickle.dumps(m))])
    def test_copies_are_apart(self, copy):
        metric = BinnedCalibrationError("multiclass", num_classes=4, n_bins=10)
        logits, target = class_rows(100, 4)
        metric.update(logits.softmax(1), target)
        twin = copy(metric)
        assert twin.sketch() == metric.sketch()
        assert twin.compute() == metric.compute()
        twin.update(logits.softmax(1), target)
        assert (metric.sketch().n, twin.sketch().n) == (100, 200)

    def test_state_dict(self):
        metric = SmoothCalibrationError()
        metric.update(*rows(100))
        assert metric.state_dict() == {}
        metric.persistent(True)
        state = metric.state_dict()
        first, second = SmoothCalibrationError(), SmoothCalibrationError()
        for loaded in (first, second):
            loaded.persistent(True)
            loaded.load_state_dict(state)
            loaded.update(*rows(50, seed=1))
        assert first.sketch() == second.sketch()
        assert first.sketch().n == 150
        assert int(state["counts"].sum()) == 100

    def test_a_state_of_other_cells(self):
        metric = SmoothCalibrationError()
        metric.persistent(True)
        state = metric.state_dict()
        other = SmoothCalibrationError(n_cells=100)
        with pytest.raises(CalibrantError, match=r"counts must have shape \(2, 100\); got \(2, 50"):
            other.load_state_dict(state)
        other.update(*rows(10))
        assert other.sketch().n == 10

    @pytest.mark.skipif(
        not hasattr(torchmetrics.Metric, "merge_state"),
        reason="this torchmetrics has no merge_state",
    )
    def test_merge_state(self):
        first, second = SmoothCalibrationError(), SmoothCalibrationError()
        first.update(*rows(100))
        second.update(*rows(50, seed=1))
        whole = first.sketch() + second.sketch()
        first.merge_state(second)
        assert first.sketch().allclose(whole)

    def test_collection_shares_one_state(self):
        metrics = torchmetrics.MetricCollection(
            {
                "smooth": SmoothCalibrationError(),
                "binned": BinnedCalibrationError(),
                "max": CumulativeCalibrationError(),
                "coarse": BinnedCalibrationError(n_cells=1500),
            }
        )
        p, y = rows(400)
        for i, batch in enumerate(zip(p.split(100), y.split(100), strict=True)):
            # Both ways in, in turn.
            (metrics if i % 2 else metrics.update)(*batch)
        assert sorted(map(sorted, metrics.compute_groups.values())) == [
            ["binned", "max", "smooth"],
            ["coarse"],
        ]
        values = metrics.compute()
        sketch = Sketch().update(y.numpy(), p.numpy())
        assert float(values["smooth"]) == pytest.approx(smooth_ece(sketch), abs=1e-12)
        assert float(values["max"]) == pytest.approx(ecce_mad(sketch), abs=1e-12)
        assert float(values["binned"]) == pytest.approx(ece(sketch), abs=1e-12)
        assert float(values["coarse"]) == pytest.approx(ece(sketch), abs=1e-12)
        metrics.reset()
        metrics.update(p, y)
        assert float(metrics.compute()["max"]) == pytest.approx(ecce_mad(sketch), abs=1e-12)

    @pytest.mark.parametrize(
        "cast",
        [lambda m: m.half(), lambda m: m.to(torch.float16), lambda m: m.set_dtype(torch.float16)],
    )
    def test_casts_leave_the_state_alone(self, cast):
        module = torch.nn.ModuleDict({"metric": SmoothCalibrationError()})
        metric = module["metric"]
        metric.update(*rows(100))
        before = metric.sketch()
        cast(metric)
        assert (metric.counts.dtype, metric.offsets.dtype) == (torch.int64, torch.float64)
        assert metric.sketch() == before
        module.to(torch.bfloat16)
        metric.reset()
        assert (metric.counts.dtype, metric.offsets.dtype) == (torch.int64, torch.float64)

    def test_moves_with_its_module(self):
        module = torch.nn.ModuleDict({"metric": SmoothCalibrationError()}).to("meta")
        assert module["metric"].counts.device.type == "meta"
        # What it is reset to moves too, or every reset would copy from one device to the other.
        assert module["metric"]._defaults["counts"].device.type == "meta"

    def test_a_device_without_float64(self, monkeypatch):
        # The meta device takes the part of MPS: tensors sent there must still be counted.
        monkeypatch.setattr("calibrant.integrations.torch._WITHOUT_FLOAT64", ("meta",))
        metric = SmoothCalibrationError().to("meta")
        assert metric.device.type == "meta"
        assert {state.device.type for state in metric.metric_state.values()} == {"cpu"}
        metric.update(*rows(10))
        metric.reset()
        metric.update(*rows(20))
        assert metric.sketch().n == 20
        assert metric.compute().device.type == "cpu"

    def test_in_and_out_of_inference_mode(self):
        p, y = rows(100)
        metric = SmoothCalibrationError()
        with torch.inference_mode():
            metric.reset()
            metric.update(p, y)
        metric.update(p, y)
        with torch.inference_mode():
            metric.update(p, y)
        assert metric.sketch().n == 300

    def test_deterministic_algorithms(self):
        torch.use_deterministic_algorithms(True)
        try:
            metric = SmoothCalibrationError()
            metric.update(*rows(100))
        finally:
            torch.use_deterministic_algorithms(False)
        assert metric.sketch().n == 100

    def test_plot(self):
        pyplot = pytest.importorskip("matplotlib.pyplot")
        metric = BinnedCalibrationError()
        metric.update(*rows(100))
        figure, axes = metric.plot()
        assert axes.get_ylim()[0] <= float(metric.compute()) <= axes.get_ylim()[1]
        pyplot.close(figure)

    def test_what_it_says_of_itself(self):
        for metric in (SmoothCalibrationError, BinnedCalibrationError, CumulativeCalibrationError):
            assert metric.is_differentiable is False
            assert metric.higher_is_better is False
            assert metric.full_state_update is False
