import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { renderTemplate, valuesAt } from './evaluate.ts'
import { parsePath, parseTemplate } from './parse.ts'
import { JsonPathError, type Path, type Step } from './template.ts'

const list = {
  kind: 'List',
  items: [
    {
      metadata: { name: 'a', labels: { 'app.kubernetes.io/name': 'web' }, annotations: { x: '🦊 "q": {y}' } },
      status: { capacity: { cpu: '4' }, addresses: [{ type: 'InternalIP', address: '10.0.0.1' }] },
      weight: 3,
      isOn: true,
    },
    {
      metadata: { name: 'b', labels: {} },
      status: {
        capacity: { cpu: '8' },
        addresses: [
          { type: 'Hostname', address: 'b' },
          { type: 'InternalIP', address: '10.0.0.2' },
        ],
      },
      weight: 5,
      isOn: false,
    },
  ],
}

const rendered = (template: string, object: unknown = list) => renderTemplate(parseTemplate(template), object)

test("the examples of kubectl's documentation give what kubectl gives", () => {
  const cases: Readonly<Record<string, string>> = {
    '{.kind}': 'List',
    '{$.kind}': 'List',
    '{@.kind}': 'List',
    "{['kind']}": 'List',
    'the type: {.kind}!': 'the type: List!',
    '{.items[*].metadata.name}': 'a b',
    '{.items[0].metadata.name}': 'a',
    '{.items[-1].metadata.name}': 'b',
    '{.items[0:2].metadata.name}': 'a b',
    '{.items[1:].metadata.name}': 'b',
    '{.items[:-1].metadata.name}': 'a',
    '{.items[0:2:2].metadata.name}': 'a',
    '{.items[0,1].metadata.name}': 'a b',
    "{.items[*]['metadata.name', 'status.capacity']}": '',
    "{.items[*]['weight','isOn']}": '3 true 5 false',
    '{..name}': 'a b',
    '{.items[*].status.addresses[?(@.type=="InternalIP")].address}': '10.0.0.1 10.0.0.2',
    "{.items[*].status.addresses[?(@.type!='InternalIP')].address}": 'b',
    '{.items[?(@.weight>3)].metadata.name}': 'b',
    '{.items[?(@.weight >= 3)].metadata.name}': 'a b',
    '{.items[?(@.isOn==true)].metadata.name}': 'a',
    '{.items[?(@.metadata.annotations)].metadata.name}': 'a',
    '{.items[?(@.status.addresses[0].type=="Hostname")].metadata.name}': 'b',
    '{range .items[*]}{.metadata.name}{"\\t"}{.status.capacity.cpu}{"\\n"}{end}': 'a\t4\nb\t8\n',
    "{range .items[*]}{range .status.addresses[*]}{.type}{' '}{end}{'|'}{end}":
      'InternalIP |Hostname InternalIP |',
    '{.items[0].metadata.labels.app\\.kubernetes\\.io/name}': 'web',
    "{.items[0].metadata.labels['app\\.kubernetes\\.io/name']}": 'web',
    "{.items[0].metadata.labels['app.kubernetes.io/name']}": 'web',
    '{.items[0].status.capacity}': '{"cpu":"4"}',
    '{.items[0].status.capacity.*}': '4',
    '{.nothing.at.all}': '',
    '{.items[*].nothing}': '',
    '{.toString}{.__proto__}{.constructor}': '',
    '{1}{" "}{2.5}': '1 2.5',
    '{.items[0].*suffix}{.items[0].\\*}': '',
    '{.items[1].status.capacity.*}': '8',
  }
  for (const [template, expected] of Object.entries(cases))
    assert.equal(rendered(template), expected, template)
})

test('a hostile text of an object comes out as it is', () => {
  assert.equal(rendered('{.items[0].metadata.annotations.x}'), '🦊 "q": {y}')
  const odd = { 'a"b': 1, "c'd": 2, 'e:f': 3, '🦊': 4, 'g]h': 5, 'i}j': 6 }
  assert.equal(rendered(`{['a"b']}{["c'd"]}{['e:f']}{['🦊']}{.🦊}{['g]h']}{['i}j']}`, odd), '1234456')
})

test('what cannot be read is told with its place, and so is what does not fit', () => {
  const cases: Readonly<Record<string, RegExp>> = {
    '{.a': /\{ at 1 is never closed by \}/,
    '{.a[0}': /never closed/,
    '{range .items[*]}{.a}': /\{range\} has no \{end\}/,
    '{end}': /\{end\} has no \{range\}/,
    '{.a[?(@.x=="y"]}': /never closed/,
    '{.a[?(@.x=="y" && @.z)]}': /one comparison/,
    '{.a[?(@.x~"y")]}': /compare by/,
    '{.a[x]}': /\[x\] is no index/,
    '{.a[0:1:0]}': /step/,
    '{"a}': /closed|closing/,
    '{a b}': /begins with a dot/,
    '{.items[7]}': /index 7, length 2/,
    '{.kind[0]}': /List is not an array/,
  }
  for (const [template, expected] of Object.entries(cases))
    assert.throws(
      () => rendered(template),
      (error) => error instanceof JsonPathError && expected.test(error.message),
      template,
    )
})

test('paths of columns and sorting need no braces', () => {
  for (const path of [
    '{.metadata.name}',
    '.metadata.name',
    'metadata.name',
    '$.metadata.name',
    "['metadata'].name",
  ])
    assert.deepEqual(valuesAt({ metadata: { name: 'x' } }, parsePath(path)), ['x'], path)
})

/** Names with all that means something in a path. */
const name = fc.oneof(
  fc.constantFrom(
    'a',
    'b',
    'items',
    'a.b',
    'a b',
    "it's",
    'q"',
    '[0]',
    '{x}',
    'a,b',
    'c:d',
    '\\',
    '🦊',
    '*',
    '*a',
    '__proto__',
  ),
  fc.string({ minLength: 1, maxLength: 6, unit: 'grapheme' }),
)

const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { depthSize: 'small' },
    fc.string(),
    fc.integer(),
    fc.boolean(),
    fc.array(tie('value'), { maxLength: 4 }),
    fc.dictionary(name, tie('value'), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value

/** Steps that mean the same to everybody, as text and as a walk that knows nothing of paths. */
interface Move {
  readonly text: string
  readonly walk: (value: unknown) => readonly unknown[]
}

const quotedName = (key: string) => `["${key.replaceAll(/["\\]/g, '\\$&')}"]`
const dottedName = (key: string) =>
  key === '*' ? String.raw`.\*` : `.${key.replaceAll(/[\s.[\]{}()=!<>,'"\\]/g, '\\$&')}`
const entry = (key: string) => (value: unknown) =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
    ? Object.entries(value).flatMap(([own, held]) => (own === key ? [held as unknown] : []))
    : []
const all = (value: unknown): readonly unknown[] =>
  typeof value === 'object' && value !== null ? Object.entries(value).map(([, held]) => held as unknown) : []

const move: fc.Arbitrary<Move> = fc.oneof(
  name.map((key) => ({ text: quotedName(key), walk: entry(key) })),
  name.map((key) => ({ text: dottedName(key), walk: entry(key) })),
  fc.constantFrom<Move>({ text: '.*', walk: all }, { text: '[*]', walk: all }),
  fc.tuple(name, name).map(([a, b]) => ({
    text: `[${quotedName(a).slice(1, -1)}, ${quotedName(b).slice(1, -1)}]`,
    walk: (value: unknown) => [...entry(a)(value), ...entry(b)(value)],
  })),
)

test('a path means what a plain walk over the object finds, whatever the names', () => {
  fc.assert(
    fc.property(json, fc.array(move, { minLength: 1, maxLength: 4 }), (object, moves) => {
      const text = moves.map((each) => each.text).join('')
      const expected = moves.reduce<readonly unknown[]>(
        (values, each) => values.flatMap((value) => each.walk(value)),
        [object],
      )
      const path = parseTemplate(`{${text}}`)[0]
      assert.ok(path?.kind === 'path')
      assert.deepEqual(valuesAt(object, path.path), expected)
    }),
    { numRuns: 500 },
  )
})

test('array steps mean what an array of JavaScript does', () => {
  const bound = fc.option(fc.integer({ min: -6, max: 6 }), { nil: undefined })
  fc.assert(
    fc.property(fc.array(fc.integer(), { maxLength: 5 }), bound, bound, (array, start, end) => {
      const text = `{[${start ?? ''}:${end ?? ''}]}`
      assert.equal(rendered(text, array), array.slice(start, end ?? array.length).join(' '))
    }),
  )
})

test('no template makes anything but a text or a JsonPathError', () => {
  const letter = fc.constantFrom(
    '{',
    '}',
    '[',
    ']',
    '(',
    ')',
    '?',
    '@',
    '.',
    '*',
    '"',
    "'",
    '\\',
    'a',
    '0',
    ':',
    ',',
    '=',
    ' ',
    'range',
    'end',
  )
  fc.assert(
    fc.property(
      fc.array(letter, { maxLength: 14 }).map((parts) => parts.join('')),
      json,
      (template, object) => {
        try {
          assert.equal(typeof rendered(template, object), 'string')
        } catch (error) {
          assert.ok(error instanceof JsonPathError, `${template}: ${String(error)}`)
        }
      },
    ),
    { numRuns: 2000 },
  )
})

test('steps know their kinds', () => {
  const kinds = (path: Path): readonly Step['kind'][] => path.map(({ kind }) => kind)
  assert.deepEqual(kinds(parsePath('.a[0][1:2]..b[*][?(@.c)]["d","e"]')), [
    'field',
    'index',
    'slice',
    'recursive',
    'field',
    'wildcard',
    'filter',
    'union',
  ])
})
