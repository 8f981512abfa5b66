"""Small HLO modules, as XLA prints them."""

from __future__ import annotations

from graph2mermaid.hlo import Cost, Instruction, Module, cost
from graph2mermaid.sources.hlo_text import parse_hlo

DENSE = """HloModule dense, is_scheduled=true, entry_computation_layout={(f32[8,16]{1,0})->f32[8,4]{1,0}}

%fused (p0: f32[8,4], p1: f32[4]) -> f32[8,4] {
  %p0 = f32[8,4]{1,0} parameter(0)
  %p1 = f32[4]{0} parameter(1)
  %wide = f32[8,4]{1,0} broadcast(%p1), dimensions={1}, metadata={op_type="AddV2" op_name="add"}
  %sum = f32[8,4]{1,0} add(%p0, %wide), metadata={op_type="AddV2" op_name="add"}
  %zero = f32[] constant(0), metadata={op_type="Relu" op_name="Relu"}
  %zeros = f32[8,4]{1,0} broadcast(%zero), dimensions={}, metadata={op_type="Relu" op_name="Relu"}
  ROOT %max = f32[8,4]{1,0} maximum(%sum, %zeros), metadata={op_type="Relu" op_name="Relu"}
}

ENTRY %main (x: f32[8,16], w: f32[16,4], b: f32[4]) -> f32[8,4] {
  %x = f32[8,16]{1,0} parameter(0), metadata={op_name="XLA_Args"}
  %w = f32[16,4]{1,0} parameter(1), metadata={op_name="XLA_Args"}
  %b = f32[4]{0} parameter(2), metadata={op_name="XLA_Args"}
  %dot = f32[8,4]{1,0} dot(%x, %w), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_type="MatMul" op_name="MatMul"}
  ROOT %bias_relu = f32[8,4]{1,0} fusion(%dot, %b), kind=kLoop, calls=%fused, metadata={op_type="Relu" op_name="Relu"}
}
"""

LOOP = """HloModule loop

%body (state: (s32[], f32[4])) -> (s32[], f32[4]) {
  %state = (s32[], f32[4]{0}) parameter(0)
  %i = s32[] get-tuple-element(%state), index=0
  %one = s32[] constant(1)
  %next = s32[] add(%i, %one)
  %value = f32[4]{0} get-tuple-element(%state), index=1
  %twice = f32[4]{0} add(%value, %value), metadata={op_type="AddV2" op_name="while/add"}
  ROOT %made = (s32[], f32[4]{0}) tuple(%next, %twice)
}

%condition (tested: (s32[], f32[4])) -> pred[] {
  %tested = (s32[], f32[4]{0}) parameter(0)
  %at = s32[] get-tuple-element(%tested), index=0
  %three = s32[] constant(3)
  ROOT %less = pred[] compare(%at, %three), direction=LT
}

ENTRY %main (x: f32[4]) -> f32[4] {
  %x = f32[4]{0} parameter(0)
  %zero = s32[] constant(0)
  %start = (s32[], f32[4]{0}) tuple(%zero, %x)
  %while = (s32[], f32[4]{0}) while(%start), condition=%condition, body=%body, backend_config={"known_trip_count":{"n":"3"}}
  ROOT %result = f32[4]{0} get-tuple-element(%while), index=1
}
"""

BRANCHES = """HloModule branches

%double (a: (f32[4], f32[4])) -> (f32[4]) {
  %a = (f32[4]{0}, f32[4]{0}) parameter(0)
  %a0 = f32[4]{0} get-tuple-element(%a), index=0
  %a1 = f32[4]{0} get-tuple-element(%a), index=1
  %sum = f32[4]{0} add(%a0, %a1)
  ROOT %made = (f32[4]{0}) tuple(%sum)
}

%negate (b: (f32[4])) -> (f32[4]) {
  %b = (f32[4]{0}) parameter(0)
  %b0 = f32[4]{0} get-tuple-element(%b), index=0
  %minus = f32[4]{0} negate(%b0)
  ROOT %other = (f32[4]{0}) tuple(%minus)
}

ENTRY %main (flag: pred[], x: f32[4], y: f32[4]) -> f32[4] {
  %flag = pred[] parameter(0)
  %x = f32[4]{0} parameter(1)
  %y = f32[4]{0} parameter(2)
  %both = (f32[4]{0}, f32[4]{0}) tuple(%x, %y)
  %only = (f32[4]{0}) tuple(%y)
  %cond = (f32[4]{0}) conditional(%flag, %both, %only), true_computation=%double, false_computation=%negate
  ROOT %result = f32[4]{0} get-tuple-element(%cond), index=0
}
"""


def module(text: str) -> Module:
    return parse_hlo(text, origin="test.txt")


def one_op(line: str, *parameters: str, before: str = "") -> tuple[Module, Instruction]:
    """Return a module whose entry has parameters `p0`, `p1`, ... and one instruction `op`."""
    taken = "\n".join(f"  %p{n} = {shape} parameter({n})" for n, shape in enumerate(parameters))
    text = f"HloModule one\n\n{before}\n\nENTRY %main {{\n{taken}\n  ROOT %op = {line}\n}}\n"
    found = module(text)
    return found, found.top.result


def cost_of(line: str, *parameters: str, before: str = "") -> Cost:
    found, instruction = one_op(line, *parameters, before=before)
    return cost(found, found.top, instruction)
