import numpy as np
import pytest

from chapter3.batches import pad_batch


@pytest.mark.parametrize(
    ("size", "multiple"), [(19, 8), (8, 8), (1, 8), (5, 1), (9, 4)]
)
def test_padding_and_weights(size, multiple):
    batch = np.arange(size * 3.0).reshape(size, 3) + 1
    padded, weights = pad_batch(batch, multiple)
    assert len(padded) == len(weights) and len(padded) % multiple == 0
    assert len(padded) - size < multiple
    np.testing.assert_array_equal(padded[:size], batch)
    assert not padded[size:].any()
    np.testing.assert_array_equal(weights, [1] * size + [0] * (len(padded) - size))


def test_the_dtype_is_kept_and_any_number_of_dimensions_is_fine():
    padded, _ = pad_batch(np.ones((3, 2, 2), np.int32), 4)
    assert padded.shape == (4, 2, 2) and padded.dtype == np.int32
    assert pad_batch(np.ones(3), 2)[0].shape == (4,)


@pytest.mark.parametrize(("size", "multiple"), [(0, 8), (3, 0)])
def test_bad_arguments(size, multiple):
    with pytest.raises(ValueError, match="must be at least 1"):
        pad_batch(np.ones((size, 2)), multiple)
