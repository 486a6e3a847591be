(module
  {imports}
  (memory (export "memory") {pages}) {more_memories}
  (table $t 4 funcref)
  (global $heap (mut i32) (i32.const {heap}))
  (global $base i32 (i32.const {heap}))
  (global $end i32 (i32.const {end}))
  (global $pages i32 (i32.const {grown}))
  (global $i (mut i32) (i32.const 0))
  (global $given (mut i32) (i32.const 0))
  (global $mark (mut i64) (i64.const 0))
  (elem declare func $recurse)
  (data (i32.const {start}) "{data}")
  (type $none (func))
  (func $start {Start})
  (start $start)
  {tail}
  (func $recurse (@name "{symbol}") (call $recurse) (call $recurse))
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32) (local $at i32)
    {Realloc}
    (local.set $at (i32.and (i32.add (global.get $heap) (i32.const 7)) (i32.const -8)))
    (global.set $heap (i32.add (local.get $at) (local.get 3)))
    (loop $more
      (if (i32.gt_u (global.get $heap) (i32.mul (memory.size) (i32.const 65536)))
        (then (if (i32.eq (memory.grow (i32.const 16)) (i32.const -1)) (then unreachable)) (br $more))))
    (local.get $at))
  (func (export "{tool}#describe") (result i32) {Describe} {rename} (i32.const {definitions}))
  (func (export "cabi_post_{tool}#describe") (param i32))
  (func (export "{tool}#validate") (param i32 i32 i32 i32 i32 i32) (result i32) {Validate} (i32.const {problems}))
  (func (export "cabi_post_{tool}#validate") (param i32))
  (func (export "{tool}#visible") (param i32) (result i32) {Visible} (i32.const {visible}))
  (func (export "{tool}#execute") (param i32) (result i32) {Execute} {destroy} {fill} (i32.const {answer}))
  (func (export "cabi_post_{tool}#execute") (param i32) {PostReturn})
  {destructor}
)
