import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readOverrides } from './overrides.ts'

function overridesIn(text: string): unknown {
  const { ok, error } = readOverrides(text)
  assert.equal(error, undefined, text)
  return ok
}

function errorOf(text: string): string {
  const { error } = readOverrides(text)
  assert.ok(error !== undefined, `taken: ${text.slice(0, 200)}`)
  return error
}

const whole = '- name: M\n  cpu: 10\n  memoryKi: 15988992\n  priceHourly: 0.1167\n'

test('CLV-48 CLV-50 both forms of the file are read, in its order', () => {
  assert.deepEqual(overridesIn(whole), [{ name: 'M', cpu: 10, memoryKi: 15_988_992, pricePerHour: 0.1167 }])
  assert.deepEqual(
    overridesIn('- name: XL\n- {name: 3XL, cpu: 32, memoryKi: 60000000}\n- name: 2XS\n  cpu: 5\n'),
    [{ name: 'XL' }, { name: '3XL', cpu: 32, memoryKi: 60_000_000 }, { name: '2XS', cpu: 5 }],
  )
  assert.deepEqual(overridesIn('[{"name":"M","priceHourly":0}]'), [{ name: 'M', pricePerHour: 0 }])
})

test('CLV-52 a document that is not a list of flavors', () => {
  for (const text of ['', '\n\n', '# nothing\n', 'null', '[]', '{}', 'name: M', 'M', '4', '---\n...\n'])
    assert.match(
      errorOf(text),
      /^line 1: the (file holds no list of flavors|list is empty); write - \{name: M/,
    )
  assert.match(errorOf('- name: M\n- XL\n'), /^line 2: entry 2 is not a flavor; write - \{name: M, cpu: /)
  for (const text of ['-\n', '- null\n', '- []\n', '- [name, M]\n', '- 4\n'])
    assert.match(errorOf(text), /^line 1: entry 1 is not a flavor/, text)
})

test('CLV-52 names that no flavor can have', () => {
  for (const [entry, told] of [
    ['cpu: 4', 'entry 1: name: is missing; give a flavor such as M'],
    ['name:', 'entry 1: name: is empty; give a value or leave the field out'],
    [
      'name: ""',
      'entry 1: name: no flavor of Clever Cloud is called ""; write 1 to 63 upper-case letters and digits',
    ],
    ['name: xl', 'entry 1: name: no flavor of Clever Cloud is called "xl"; write XL'],
    [
      'name: "M "',
      'entry 1: name: no flavor of Clever Cloud is called "M "; write 1 to 63 upper-case letters and digits',
    ],
    ['name: 2E1', 'entry 1: name: is 2E1, not a text; put it in quotes'],
    ['name: 16', 'entry 1: name: is 16, not a text; put it in quotes'],
    ['name: TRUE', 'entry 1: name: is TRUE, not a text; put it in quotes'],
    ['name: [M]', 'entry 1: name: holds a list or map; give one value'],
  ] as const)
    assert.equal(errorOf(`- ${entry}\n`), `line 1: ${told}`)
  for (const name of ['M/L', 'Ä', '__proto__', 'constructor', 'M-L', 'X'.repeat(64)])
    assert.match(
      errorOf(`- name: ${JSON.stringify(name)}\n`),
      /^line 1: entry 1: name: no flavor of Clever Cloud is/,
    )
})

test('CLV-52 a name that is given twice', () => {
  assert.equal(
    errorOf('- name: M\n- name: L\n- cpu: 4\n  name: M\n'),
    'line 4: flavor M: name: is given twice; leave one entry',
  )
})

test('CLV-52 sizes that no flavor can have', () => {
  const told = (field: string, value: string) => errorOf(`- name: M\n  ${field}: ${value}\n`)
  for (const value of [
    '0',
    '-0',
    '-1',
    '1.5',
    '1e400',
    '.inf',
    '-.inf',
    '.nan',
    '1025',
    '"10"',
    'true',
    '1_0',
    '10Gi',
  ])
    assert.match(told('cpu', value), /^line 2: flavor M: cpu: is .*; use an integer of vCPUs from 1 to 1024$/)
  // In MiB, in GB, and in bytes.
  for (const value of ['0', '-5', '15614', '16', '16372727808', '1e30', '102400', '.nan'])
    assert.match(
      told('memoryKi', value),
      /^line 2: flavor M: memoryKi: is .*; use an integer of KiB from 102401 to 1073741824$/,
      value,
    )
  assert.deepEqual(overridesIn('- {name: M, cpu: 0x10, memoryKi: 102401}'), [
    { name: 'M', cpu: 16, memoryKi: 102_401 },
  ])
  assert.equal(told('cpu', '010'), 'line 2: entry 1: cpu: is 010; write it without the 0 in front')
})

test('CLV-52 prices that nobody can pay', () => {
  for (const value of ['-1', '-0.0001', '.nan', '.inf', '1e400', '1000000001', '"0.1"', 'false', '0,11'])
    assert.match(
      errorOf(`- name: M\n  priceHourly: ${value}\n`),
      /^line 2: flavor M: priceHourly: is .*; give euros per hour from 0 to 1000000000, or leave the field out$/,
    )
  const [free] = overridesIn('- {name: M, priceHourly: -0.0}') as { pricePerHour: number }[]
  assert.ok(Object.is(free?.pricePerHour, 0), 'a negative zero is zero')
})

test('CLV-51 CLV-52 a flavor that is not built in needs its size; its price it does not', () => {
  assert.equal(
    errorOf('- name: M\n- name: CUSTOM\n  cpu: 6\n  priceHourly: 0.1\n'),
    'line 2: flavor CUSTOM: memoryKi: is missing; this version does not know the flavor: give cpu and memoryKi',
  )
  assert.match(errorOf('- {name: CUSTOM, memoryKi: 8000000}'), /^line 1: flavor CUSTOM: cpu: is missing/)
  assert.deepEqual(overridesIn('- {name: CUSTOM, cpu: 6, memoryKi: 8000000}'), [
    { name: 'CUSTOM', cpu: 6, memoryKi: 8_000_000 },
  ])
})

test('an unknown or repeated field, and an empty one', () => {
  const fields = 'there are name, cpu, memoryKi, priceHourly'
  for (const key of ['memory', 'pricehourly', 'CPU', '__proto__', 'constructor', '<<', 'null', '4'])
    assert.equal(
      errorOf(`- name: M\n  ${key}: 4\n`),
      `line 2: entry 1: unknown field ${JSON.stringify(key)}; ${fields}`,
    )
  assert.equal(errorOf('- name: M\n  ? [a]\n  : 4\n'), `line 2: entry 1: a field has no name; ${fields}`)
  assert.equal(errorOf('- name: M\n  cpu: 4\n  cpu: 4\n'), 'line 3: entry 1: cpu: is given twice; leave one')
  assert.equal(
    errorOf('- name: M\n  cpu:\n  memoryKi: 15988992\n'),
    'line 2: entry 1: cpu: is empty; give a value or leave the field out',
  )
})

test('YAML that is not valid, or holds more than one document', () => {
  assert.match(errorOf('- name: M\n\tcpu: 4\n'), /^line 2: not valid YAML: [^\n]+$/)
  assert.match(errorOf('- name: M\n  cpu: [4\n'), /^line \d: not valid YAML: [^\n]+$/)
  assert.match(errorOf('- name: !flavor M\n'), /^line 1: not valid YAML: [^\n]+$/)
  assert.equal(
    errorOf(`${whole}---\n- name: L\n`),
    'line 5: another document begins; leave one list in the file',
  )
  assert.deepEqual(overridesIn(`---\n${whole}...\n`), overridesIn(whole))
  assert.deepEqual(overridesIn(`\uFEFF${whole}`), overridesIn(whole))
  assert.deepEqual(overridesIn(whole.replaceAll('\n', '\r\n')), overridesIn(whole))
})

test('aliases are not followed, whatever they would grow to', () => {
  assert.equal(
    errorOf('- name: M\n  cpu: &c 4\n- name: L\n  cpu: *c\n'),
    'line 4: entry 2: cpu: is an alias (*c); write the value itself',
  )
  assert.match(errorOf('- &m {name: M}\n- *m\n'), /^line 2: entry 2 is not a flavor/)
  const levels = Array.from(
    { length: 30 },
    (_, level) => `l${level + 1}: &l${level + 1} [*l${level}, *l${level}]\n`,
  )
  assert.match(errorOf(`l0: &l0 [x, x]\n${levels.join('')}`), /^line 1: the file holds no list of flavors/)
  assert.match(errorOf('- &a [*a]\n'), /^line 1: /)
})

test('lists and maps that are far too deep are told before they are read', () => {
  for (const text of [
    '['.repeat(65_000),
    '['.repeat(32_000) + ']'.repeat(32_000),
    '{a: '.repeat(16_000),
    '- '.repeat(32_000),
    '? '.repeat(32_000),
  ])
    assert.equal(errorOf(`\n${text}`), 'line 2: lists and maps within one another are too deep')
  const nested = Array.from({ length: 300 }, (_, depth) => `${' '.repeat(depth)}a:\n`).join('')
  assert.equal(errorOf(nested), 'line 130: lists and maps within one another are too deep')
})

test('a file that is far too large is told quickly, and in few words', () => {
  for (const text of [
    whole.repeat(10_000),
    `- name: ${'X'.repeat(60_000)}`,
    `- name: M\n  ${'k'.repeat(60_000)}: 4`,
    `- name: M\n${'  cpu: 4\n'.repeat(6000)}`,
    '&a '.repeat(20_000),
    '"\\u'.repeat(20_000),
  ]) {
    const error = errorOf(text)
    assert.match(error, /^line \d+: /)
    assert.ok(error.length < 400, `${error.length} characters`)
  }
})
