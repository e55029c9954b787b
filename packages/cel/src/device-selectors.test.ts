import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Device } from '@tenon/api'
import { askDeviceSelector, compileDeviceSelector, deviceSelectorProblem } from './index.ts'

const driver = 'dra.example.com'
const device: Device = {
  name: 'gpu-0',
  attributes: {
    oneBool: { bool: true },
    anotherBool: { bool: true },
    'ext.example.com/someBool': { bool: false },
    model: { string: 'a100' },
    index: { int: 3 },
    version: { version: '1.20.0' },
    zones: { strings: ['a', 'b'] },
    builds: { versions: ['1.0.0', '2.0.0'] },
  },
  capacity: { memory: { value: '40Gi' } },
}

const answerOf = (text: string) => askDeviceSelector(compileDeviceSelector(text), device, driver)

test('a part of an expression has a name with cel.bind, also within another one', () => {
  const own = `device.attributes["${driver}"]`
  assert.equal(answerOf(`cel.bind(dra, ${own}, dra.oneBool && dra.anotherBool)`), true)
  const inner = 'cel.bind(index, dra.index, index > 2 && dra.model == "a100")'
  assert.equal(answerOf(`cel.bind(dra, ${own}, ${inner})`), true)
  assert.equal(answerOf(`cel.bind(dra, ${own}, ${inner.replace('2', '3')})`), false)
  assert.equal(
    answerOf(
      `cel.bind(memory, device.capacity["${driver}"].memory, memory.compareTo(quantity("40Gi")) >= 0)`,
    ),
    true,
  )
  // A name holds in the body alone, and hides one of the same name.
  assert.match(
    compileDeviceSelector(`cel.bind(dra, ${own}, dra.oneBool) && dra.oneBool`).problem ?? '',
    /dra/,
  )
  assert.equal(answerOf(`cel.bind(x, 1, cel.bind(x, 2, x == 2) && x == 1)`), true)
  assert.equal(answerOf(`cel.bind(x, 3, [1, 2].exists(y, y == x - 1))`), true)
})

test('an attribute includes a value, be it a list or not', () => {
  const own = (rest: string) => answerOf(`device.attributes["${driver}"].${rest}`)
  assert.equal(own('zones.includes("b")'), true)
  assert.equal(own('zones.includes("c")'), false)
  assert.equal(own('model.includes("a100")'), true)
  assert.equal(own('builds.includes(semver("2.0.0"))'), true)
})

test('a selector that the API server refuses has a problem, all others have none', () => {
  for (const text of [
    'device.driver == "gpu.example.com"',
    `device.driver == "x" && device.attributes["x"].model == "a100"`,
    `device.attributes["${driver}"].oneBool`,
    `device.attributes["${driver}"].model.startsWith("a")`,
    `device.attributes["${driver}"].version.isGreaterThan(semver("1.0.0"))`,
    `device.capacity["${driver}"].memory.isGreaterThan(quantity("10Gi"))`,
    `"${driver}" in device.attributes && "model" in device.attributes["${driver}"]`,
    `device.attributes["${driver}"].?model.orValue("x") == "x"`,
    `cel.bind(dra, device.attributes["${driver}"], dra.oneBool && dra.anotherBool)`,
    'device.allowMultipleAllocations',
    'true',
  ]) {
    assert.equal(deviceSelectorProblem(text), undefined, text)
    assert.equal(compileDeviceSelector(text).problem, undefined, text)
  }
  for (const text of [
    '',
    '1 + 1',
    'device.driver',
    'device.driver ==',
    'device.drive == "x"',
    'device.driver == 1',
    'device.allowMultipleAllocations == "x"',
    `device.capacity["${driver}"].memory == 5`,
    'nobody == 1',
  ])
    assert.notEqual(deviceSelectorProblem(text), undefined, text)
})

describe('RPB-47 what an expression may cost', () => {
  const list = (length: number) => `[${Array.from({ length }, (_, i) => i).join(', ')}]`
  const nested = (depth: number, range: string): string =>
    depth === 0 ? 'true' : `${range}.all(x${depth}, ${nested(depth - 1, range)})`

  test('is bounded before it is run', () => {
    for (const text of [
      nested(5, list(100)),
      nested(4, list(30)),
      `cel.bind(a, ${list(100)}, ${nested(3, 'a')})`,
      'lists.range(1000000).all(x, x >= 0)',
      `${list(100)}.map(x, ${nested(2, list(100))}).size() > 0`,
    ]) {
      const start = process.threadCpuUsage()
      assert.match(deviceSelectorProblem(text) ?? '', /limit of 1000000/, text.slice(0, 60))
      assert.match(compileDeviceSelector(text).problem ?? '', /limit of 1000000/)
      assert.ok(process.threadCpuUsage(start).user < 2_000_000)
    }
  })

  test('leaves alone what Kubernetes allows', () => {
    for (const text of [
      nested(2, list(100)),
      nested(3, list(20)),
      'device.attributes["a.example"].exists(k, k == "b")',
    ])
      assert.equal(compileDeviceSelector(text).problem, undefined, text.slice(0, 60))
  })
})
