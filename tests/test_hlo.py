import jax
import jax.numpy as jnp
import pytest
from jax import lax
from jax.sharding import AxisType, NamedSharding
from jax.sharding import PartitionSpec as P

from chapter3 import device_mesh, hlo

RING = [(j, (j + 1) % 8) for j in range(8)]


def compile_on(axes, f, in_specs, out_specs, x, **options):
    mesh = device_mesh(axes)
    mapped = jax.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, **options
    )
    placed = jax.device_put(x, NamedSharding(mesh, in_specs))
    return jax.jit(mapped).lower(placed).compile()


def on_ring(f, out_specs=None, x=None):
    x = jnp.ones((8, 1024)) if x is None else x
    return compile_on(
        {"i": 8}, f, P("i"), P("i") if out_specs is None else out_specs, x
    )


# local block: float32[1, 1024], 4096 bytes
OPERATIONS = {
    "all-reduce": (lambda v: lax.psum(v, "i"), P(), 4096, 7168),
    "all-gather": (lambda v: lax.all_gather(v, "i", tiled=True), P("i"), 32768, 28672),
    "reduce-scatter": (
        lambda v: lax.psum_scatter(v, "i", scatter_dimension=1, tiled=True),
        P("i"),
        4096,
        3584,
    ),
    "all-to-all": (
        lambda v: lax.all_to_all(v, "i", 1, 0, tiled=True),
        P(None, "i"),
        4096,
        3584,
    ),
    "collective-permute": (lambda v: lax.ppermute(v, "i", RING), P("i"), 4096, 4096),
}


@pytest.mark.parametrize("kind", OPERATIONS)
def test_each_kind_with_its_bytes(kind):
    f, out_specs, nbytes, wire = OPERATIONS[kind]
    compiled = on_ring(f, out_specs)
    (op,) = hlo.collectives(compiled)
    assert (op.kind, op.nbytes, op.times) == (kind, nbytes, 1)
    assert op.wire_bytes == hlo.wire_bytes(compiled) == wire
    if kind == "collective-permute":
        assert op.groups == tuple(RING)
    else:
        assert op.groups == (tuple(range(8)),)


@pytest.mark.parametrize("dtype", ["float16", "int8", "int32", "float32", "bool"])
def test_bytes_of_other_types(dtype):
    (op,) = hlo.collectives(
        on_ring(lambda v: lax.all_gather(v, "i"), x=jnp.ones((8, 16), dtype))
    )
    assert op.nbytes == 8 * 16 * jnp.dtype(dtype).itemsize


def test_bfloat16_is_sent_as_float32_by_cpu_programs():
    # Not a law of JAX: XLA's CPU backend widens it, and the text says what really runs.
    compiled = on_ring(
        lambda v: lax.all_gather(v, "i"), x=jnp.ones((8, 16), "bfloat16")
    )
    (op,) = hlo.collectives(compiled)
    assert op.nbytes == 8 * 16 * 4
    assert hlo.shape_bytes("bf16[8,16]{1,0}") == 8 * 16 * 2


def test_collective_in_a_loop_is_counted_each_time():
    def body(_, v):
        return lax.ppermute(v, "i", RING)

    compiled = on_ring(lambda v: lax.fori_loop(0, 5, body, v))
    assert compiled.as_text().count(" collective-permute(") == 1
    assert hlo.executed(compiled) == {"collective-permute": 5}
    assert hlo.wire_bytes(compiled) == 5 * 4096


def test_nested_loops_multiply():
    def inner(v, _):
        return lax.ppermute(v, "i", RING), None

    def outer(v, _):
        return lax.scan(inner, v, None, length=3)[0], None

    compiled = on_ring(lambda v: lax.scan(outer, v, None, length=7)[0])
    assert hlo.executed(compiled) == {"collective-permute": 21}


def test_a_collective_in_a_loops_condition_runs_once_more():
    text = """\
HloModule m, num_partitions=2
%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %c = f32[] add(%a, %b)
}
%body (p: f32[]) -> f32[] {
  ROOT %p = f32[] parameter(0)
}
%cond (p: f32[]) -> pred[] {
  %p = f32[] parameter(0)
  %s = f32[] all-reduce(%p), replica_groups=[1,2]<=[2], to_apply=%add
  ROOT %r = pred[] compare(%s, %s), direction=LT
}
ENTRY %main (p: f32[]) -> f32[] {
  %p = f32[] parameter(0)
  ROOT %w = f32[] while(%p), condition=%cond, body=%body, \
backend_config={"known_trip_count":{"n":"4"}}
}
"""
    assert hlo.executed(text) == {"all-reduce": 5}


def test_loop_of_unknown_length_is_refused():
    def halve(v):
        return lax.ppermute(v, "i", RING) / 2

    compiled = on_ring(
        lambda v: lax.while_loop(lambda v: jnp.sum(v) > 1, halve, v),
    )
    with pytest.raises(ValueError, match="trip count the compiler does not know"):
        hlo.collectives(compiled)


def test_collective_in_a_branch_is_refused():
    compiled = on_ring(
        lambda v: lax.cond(
            v[0, 0] > 0, lambda v: lax.ppermute(v, "i", RING), lambda v: v, v
        )
    )
    with pytest.raises(ValueError, match="branch of a conditional"):
        hlo.collectives(compiled)


def test_unknown_communication_is_refused():
    text = (
        "HloModule m, num_partitions=2\n"
        "ENTRY %main (p: f32[2]) -> f32[2] {\n"
        "  ROOT %b = f32[2] collective-broadcast(%p), replica_groups={{0,1}}\n"
        "}\n"
    )
    with pytest.raises(ValueError, match="'collective-broadcast'"):
        hlo.collectives(text)


def test_other_text_is_refused():
    with pytest.raises(ValueError, match="no ENTRY"):
        hlo.collectives("module @jit_f { }")


def test_no_collectives():
    compiled = jax.jit(lambda x: 2 * x).lower(jnp.ones(3)).compile()
    assert hlo.collectives(compiled) == [] and hlo.wire_bytes(compiled) == 0


@pytest.mark.parametrize(
    ("axes", "over", "groups"),
    [
        ({"a": 4, "b": 2}, "a", ((0, 2, 4, 6), (1, 3, 5, 7))),
        ({"a": 4, "b": 2}, "b", ((0, 1), (2, 3), (4, 5), (6, 7))),
        ({"a": 2, "b": 4}, "a", ((0, 4), (1, 5), (2, 6), (3, 7))),
        ({"a": 2, "b": 4}, "b", ((0, 1, 2, 3), (4, 5, 6, 7))),
        ({"a": 2, "b": 4}, ("a", "b"), (tuple(range(8)),)),
    ],
)
def test_groups_over_one_axis_of_a_mesh(axes, over, groups):
    names = over if isinstance(over, tuple) else (over,)
    rest = P(*(None if n in names else n for n in "ab"))
    compiled = compile_on(
        axes, lambda v: lax.psum(v, over), P("a", "b"), rest, jnp.ones((8, 8))
    )
    (op,) = hlo.collectives(compiled)
    assert op.groups == groups
    n = len(groups[0])
    assert op.nbytes == 8 * 8 // 8 * 4
    assert op.wire_bytes == 2 * (n - 1) / n * op.nbytes


def test_groups_written_as_a_list():
    listed = [[0, 3, 4, 6], [1, 2, 5, 7]]
    compiled = compile_on(
        {"i": 8},
        lambda v: lax.psum(v, "i", axis_index_groups=listed),
        P("i"),
        P("i"),
        jnp.ones((8, 2)),
        check_vma=False,
    )
    assert "replica_groups={{0,3,4,6},{1,2,5,7}}" in compiled.as_text()
    (op,) = hlo.collectives(compiled)
    assert op.groups == ((0, 3, 4, 6), (1, 2, 5, 7))


def test_groups_written_by_the_partitioner():
    # A product whose operands must be exchanged: here XLA itself chooses the groups.
    mesh = device_mesh({"a": 4, "b": 2}, AxisType.Auto)
    x = jax.device_put(jnp.ones((8, 8)), NamedSharding(mesh, P("a", "b")))
    product = jax.jit(lambda x: x @ x, out_shardings=NamedSharding(mesh, P("b", "a")))
    compiled = product.lower(x).compile()
    assert "<=[" in compiled.as_text() and "=mesh[" in compiled.as_text()
    for op in hlo.collectives(compiled):
        devices = [d for group in op.groups for d in group]
        if op.kind == "collective-permute":
            assert len({source for source, _ in op.groups}) == len(op.groups)
        else:
            assert sorted(devices) == list(range(8))


def test_pmap_is_read_too():
    f = jax.pmap(lambda v: lax.psum(v, "k"), axis_name="k")
    compiled = f.lower(jnp.ones((8, 3))).compile()
    (op,) = hlo.collectives(compiled)
    assert (op.kind, op.nbytes, op.group_size) == ("all-reduce", 12, 8)


def test_a_permute_to_itself_sends_nothing():
    compiled = on_ring(lambda v: lax.ppermute(v, "i", [(0, 0), (1, 1)]))
    (op,) = hlo.collectives(compiled)
    assert op.kind == "collective-permute" and op.wire_bytes == 0


def test_asynchronous_forms_of_other_backends():
    # As XLA prints them for GPUs and TPUs: the pair of start and done is one operation.
    text = """\
HloModule m, num_partitions=4
%add (a: f32[], b: f32[]) -> f32[] {
  ROOT %c = f32[] add(%a, %b)
}
ENTRY %main (p: f32[8]) -> f32[32] {
  %p = f32[8]{0} parameter(0)
  %r = f32[8]{0} all-reduce-start(%p), replica_groups={{0,1,2,3}}, to_apply=%add
  %s = f32[8]{0} all-reduce-done(%r)
  %g = (f32[8]{0}, f32[32]{0}) all-gather-start(%s), replica_groups={{0,1,2,3}}
  %h = f32[32]{0} all-gather-done(%g)
  %q = (f32[8]{0}, f32[8]{0}, u32[], u32[]) collective-permute-start(%s), \
source_target_pairs={{0,1},{1,0}}
  %t = f32[8]{0} collective-permute-done(%q)
  ROOT %o = f32[32]{0} copy(%h)
}
"""
    read = [(op.kind, op.nbytes) for op in hlo.collectives(text)]
    assert read == [
        ("all-reduce", 32),
        ("all-gather", 128),
        ("collective-permute", 32),
    ]


def test_op_name_tells_the_python_origin():
    def f(v):
        with jax.named_scope("combine_gradients"):
            return lax.psum(v, "i")

    (op,) = hlo.collectives(on_ring(f, P()))
    assert "combine_gradients" in op.op_name
