import pytest

from chapter3.choice import Plan, costs


def test_state_and_traffic_of_the_zero_family():
    plan = Plan(parameters=7.5e9, devices=64)
    found = costs(plan)
    assert found["DP"].kept == 120e9
    assert round(found["ZeRO-3"].kept / 1e9, 1) == 1.9
    assert found["DP"].sent == 2 * 63 / 64 * 15e9 == found["ZeRO-2"].sent
    assert found["ZeRO-3"].sent == 1.5 * found["DP"].sent
    assert found["DP x TP 8"].kept == found["DP x pipeline 8"].kept == 15e9


def test_tensor_traffic_grows_with_the_tokens_and_data_traffic_does_not():
    small, large = (costs(Plan(tokens=t)) for t in (2**18, 2**20))
    assert small["DP"].sent == large["DP"].sent
    assert large["DP x TP 8"].sent > 3 * small["DP x TP 8"].sent


def test_a_pipeline_worked_out_by_hand():
    plan = Plan(
        parameters=8e6,
        layers=4,
        width=100,
        tokens=800,
        devices=4,
        tensor=2,
        stages=4,
        microbatches=8,
        slow=1e9,
        latency=0.0,
    )
    cost = costs(plan)["DP x pipeline 4"]
    microbatch = 2 * 800 * 100 / 8  # float16; all devices are stages: data = 1
    result = 2 * 3 / 4 * 8 * microbatch  # the all-reduce of the result
    assert cost.sent == 11 * (2 * microbatch + 4) + result
    assert cost.seconds == pytest.approx((2 * 11 * microbatch + result) / 1e9)
    assert cost.idle == 3 / 11
    assert cost.kept == 16 * 8e6 / 4


@pytest.mark.parametrize("bad", [{"tensor": 7}, {"stages": 0}])
def test_groups_must_divide_the_devices(bad):
    with pytest.raises(ValueError, match="must divide"):
        Plan(**bad)
