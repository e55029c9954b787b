import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ResourceDefinition, StoredObject } from '../../contract.ts'
import { fieldErrorsMessage, fieldErrorText } from '../field-errors.ts'
import { compileCrd } from './compile-crd.ts'
import type { JsonSchema } from './json-schema.ts'

function aCrd(spec: JsonSchema, version: object = {}): StoredObject {
  const openAPIV3Schema = {
    type: 'object',
    properties: {
      apiVersion: { type: 'string' },
      kind: { type: 'string' },
      metadata: { type: 'object' },
      spec,
    },
  }
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'pools.example.com' },
    spec: {
      group: 'example.com',
      scope: 'Cluster',
      names: { plural: 'pools', kind: 'Pool' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema }, ...version }],
    },
  }
}

function compiled(spec: JsonSchema, version: object = {}): ResourceDefinition {
  const [definition] = compileCrd(aCrd(spec, version)).definitions ?? []
  assert.ok(definition)
  return definition
}

function aPool(spec: unknown, more: object = {}): StoredObject {
  return { apiVersion: 'example.com/v1', kind: 'Pool', metadata: { name: 'a' }, spec, ...more }
}

function refusal(schema: JsonSchema, spec: unknown, old?: unknown): string {
  const definition = compiled(schema)
  const now = definition.applyDefaults(aPool(spec))
  const errors = definition.validate(
    now,
    old === undefined ? undefined : definition.applyDefaults(aPool(old)),
  )
  return errors.length === 0 ? 'valid' : fieldErrorsMessage('Pool.example.com', 'a', errors)
}

function object(properties: Record<string, JsonSchema>, more: JsonSchema = {}): JsonSchema {
  return { type: 'object', properties, ...more }
}

const refused = 'Pool.example.com "a" is invalid: '

test('fills nested defaults below parents that exist, an empty default included', () => {
  const definition = compiled(
    object({
      kubelet: object({ high: { type: 'integer', default: 85 } }, { default: {} }),
      other: object({ low: { type: 'integer', default: 80 } }),
      budgets: { type: 'array', default: [{}], items: object({ nodes: { type: 'string', default: '10%' } }) },
    }),
  )
  assert.deepEqual(definition.applyDefaults(aPool({}))['spec'], {
    kubelet: { high: 85 },
    budgets: [{ nodes: '10%' }],
  })
  const full = definition.applyDefaults(aPool({ other: {} }))
  assert.deepEqual((full['spec'] as { other: unknown }).other, { low: 80 })
  assert.equal(definition.applyDefaults(full), full)
})

test('an explicit null counts as absent', () => {
  const definition = compiled(
    object({
      a: { type: 'string', default: 'x' },
      b: { type: 'string' },
      c: { type: 'string', nullable: true },
    }),
  )
  assert.deepEqual(definition.applyDefaults(aPool({ a: null, b: null, c: null }))['spec'], {
    a: 'x',
    c: null,
  })
})

test('prunes what the schema does not know, but not where it keeps unknown fields', () => {
  const definition = compiled(
    object({
      free: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
      map: { type: 'object', additionalProperties: { type: 'string' } },
    }),
  )
  const { object: kept, unknownFields } = definition.prune(
    aPool({ free: { a: 1 }, map: { b: 'c' }, gone: 1 }, { extra: 1 }),
  )
  assert.deepEqual(kept['spec'], { free: { a: 1 }, map: { b: 'c' } })
  assert.deepEqual(unknownFields, ['spec.gone', 'extra'])
})

test('refuses values in the words of an API server', () => {
  const schema = object(
    {
      size: { type: 'integer', minimum: 10, maximum: 20 },
      mode: { type: 'string', enum: ['b', 'c'] },
      id: { type: 'string', pattern: '^[a-z]+$', maxLength: 3 },
      amount: { 'x-kubernetes-int-or-string': true, anyOf: [{ type: 'integer' }, { type: 'string' }] },
      set: { type: 'array', 'x-kubernetes-list-type': 'set', maxItems: 2, items: { type: 'string' } },
      at: { type: 'string', format: 'date-time' },
    },
    { required: ['size'] },
  )
  const cases: [object, string][] = [
    [{ size: 10, amount: '1Gi' }, 'valid'],
    [{}, `${refused}spec.size: Required value`],
    [
      { size: 5 },
      `${refused}spec.size: Invalid value: 5: spec.size in body should be greater than or equal to 10`,
    ],
    [
      { size: 'x' },
      `${refused}spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"`,
    ],
    [{ size: 10, mode: 'a' }, `${refused}spec.mode: Unsupported value: "a": supported values: "b", "c"`],
    [{ size: 10, id: 'A' }, `${refused}spec.id: Invalid value: "A": spec.id in body should match '^[a-z]+$'`],
    [{ size: 10, id: 'abcd' }, `${refused}spec.id: Too long: may not be more than 3 bytes`],
    [
      { size: 10, amount: 1.5 },
      `${refused}spec.amount: Invalid value: "number": spec.amount in body must be of type integer,string: "number"`,
    ],
    [{ size: 10, set: ['a', 'a'] }, `${refused}spec.set[1]: Duplicate value: "a"`],
    [{ size: 10, set: ['a', 'b', 'c'] }, `${refused}spec.set: Too many: 3: must have at most 2 items`],
    [
      { size: 10, at: 'now' },
      `${refused}spec.at: Invalid value: "now": spec.at in body must be of type date-time: "now"`,
    ],
  ]
  for (const [spec, message] of cases) assert.equal(refusal(schema, spec), message)
})

test('does not refuse what was stored before and stays the same', () => {
  const schema = object({ a: { type: 'string', pattern: '^x' }, b: { type: 'string' } })
  assert.equal(refusal(schema, { a: 'old', b: '2' }, { a: 'old', b: '1' }), 'valid')
  assert.notEqual(refusal(schema, { a: 'new' }, { a: 'old' }), 'valid')
})

const pool = object(
  {
    replicas: { type: 'integer', format: 'int64' },
    weight: { type: 'integer' },
    limits: { type: 'object', additionalProperties: { 'x-kubernetes-int-or-string': true } },
  },
  {
    'x-kubernetes-validations': [
      { rule: 'has(self.replicas) == has(oldSelf.replicas)', message: 'static and dynamic do not mix' },
      {
        rule: "!has(self.replicas) || !has(self.limits) || self.limits.all(k, k == 'nodes')",
        message: 'nodes only',
      },
      { rule: '!(has(self.replicas) && has(self.weight))', message: 'no weight' },
    ],
  },
)

test('S1 the presence of a field may not change on update, and is free on create', () => {
  assert.equal(refusal(pool, { replicas: 3 }), 'valid')
  assert.equal(refusal(pool, { replicas: 5 }, { replicas: 3 }), 'valid')
  assert.equal(
    refusal(pool, { replicas: 3 }, {}),
    `${refused}spec: Invalid value: static and dynamic do not mix`,
  )
})

test('S2 S3 rules look at the presence of fields and at map keys', () => {
  assert.equal(refusal(pool, { replicas: 1, limits: { nodes: 5 } }), 'valid')
  assert.equal(
    refusal(pool, { replicas: 1, limits: { cpu: 5 } }),
    `${refused}spec: Invalid value: nodes only`,
  )
  assert.equal(refusal(pool, { replicas: 1, weight: 5 }), `${refused}spec: Invalid value: no weight`)
})

const requirements = object({
  requirements: {
    type: 'array',
    items: object({
      operator: { type: 'string' },
      values: { type: 'array', items: { type: 'string' } },
      minValues: { type: 'integer' },
    }),
    'x-kubernetes-validations': [
      { rule: "self.all(x, x.operator != 'In' || x.values.size() > 0)", message: 'In needs values' },
      {
        rule: "self.all(x, x.operator != 'Gt' || (x.values.size() == 1 && int(x.values[0]) >= 0))",
        message: 'one number',
      },
      {
        rule: "self.all(x, !(x.operator == 'In' && has(x.minValues)) || x.values.size() >= x.minValues)",
        message: 'too few',
      },
    ],
  },
})

test('Q1 Q2 Q3 rules over lists compare sizes and parse numbers', () => {
  const at = `${refused}spec.requirements: Invalid value: `
  const check = (requirement: object): string => refusal(requirements, { requirements: [requirement] })
  assert.equal(check({ operator: 'In', values: ['a'] }), 'valid')
  assert.equal(check({ operator: 'NotIn' }), 'valid')
  assert.equal(check({ operator: 'In', values: [] }), `${at}In needs values`)
  assert.equal(
    check({ operator: 'In' }),
    `${at}"array": no such key: values evaluating rule: In needs values`,
  )
  assert.equal(check({ operator: 'Gt', values: ['0'] }), 'valid')
  for (const values of [['1', '2'], [], ['-1']])
    assert.equal(check({ operator: 'Gt', values }), `${at}one number`)
  for (const value of ['a', '1.5', '99999999999999999999']) {
    assert.match(
      check({ operator: 'Gt', values: [value] }),
      /type conversion error from 'string' to 'int' evaluating rule: one number/,
    )
  }
  assert.equal(check({ operator: 'In', values: ['a'], minValues: 2 }), `${at}too few`)
})

test('L1 rules over map keys test prefixes and suffixes', () => {
  const labels = object({
    labels: {
      type: 'object',
      additionalProperties: { type: 'string' },
      'x-kubernetes-validations': [
        {
          rule: "self.all(k, k in ['karpenter.sh/capacity-type'] || !k.split('/')[0].endsWith('karpenter.sh'))",
          message: 'restricted',
        },
      ],
    },
  })
  const check = (key: string): boolean => refusal(labels, { labels: { [key]: 'x' } }) === 'valid'
  assert.deepEqual(['karpenter.sh/capacity-type', 'kubernetes.io/x', 'kops.k8s.io/gpu'].map(check), [
    true,
    true,
    true,
  ])
  assert.deepEqual(
    ['karpenter.sh/custom', 'foo.karpenter.sh/x', 'mykarpenter.sh/x', 'karpenter.sh'].map(check),
    [false, false, false, false],
  )
})

test('a refusal by a rule shows a scalar, but neither an object nor a list', () => {
  const never = [{ rule: 'false', message: 'never' }]
  const schema = object({
    text: { type: 'string', 'x-kubernetes-validations': never },
    list: { type: 'array', items: { type: 'string' }, 'x-kubernetes-validations': never },
    map: object({}, { 'x-kubernetes-validations': never }),
  })
  assert.equal(
    refusal(schema, { text: 'a', list: ['a'], map: {} }),
    `${refused}[spec.text: Invalid value: "a": never, spec.list: Invalid value: never, spec.map: Invalid value: never]`,
  )
})

test('rules are not run on values of a wrong type, and the refusal says so', () => {
  const schema = object(
    { size: { type: 'integer' }, id: { type: 'string', pattern: '^a$', minLength: 1 } },
    { 'x-kubernetes-validations': [{ rule: 'has(self.size)', message: 'give a size' }] },
  )
  assert.equal(
    refusal(schema, { size: 'x' }),
    `${refused}[spec.size: Invalid value: "string": spec.size in body must be of type integer: "string", <nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the existing errors to complete validation]`,
  )
  assert.equal(
    refusal(schema, { id: '' }),
    `${refused}[spec.id: Invalid value: "": spec.id in body should be at least 1 chars long, spec: Invalid value: give a size]`,
  )
})

test('int() of a text takes decimal digits and a sign, nothing else', () => {
  const schema = object({
    text: {
      type: 'string',
      'x-kubernetes-validations': [{ rule: 'int(self) >= 0', message: 'negative' }],
    },
  })
  for (const text of ['0', '+5', '-0', '007', '9223372036854775807']) {
    assert.equal(refusal(schema, { text }), 'valid', text)
  }
  for (const text of ['', ' 1', '0b1', '0X10', '1.5', 'a', '9223372036854775808']) {
    assert.equal(
      refusal(schema, { text }),
      `${refused}spec.text: Invalid value: "string": type conversion error from 'string' to 'int' evaluating rule: negative`,
      text,
    )
  }
})

test('EXO-A3 rules run on defaulted values', () => {
  const schema = object({
    kubelet: object(
      { high: { type: 'integer', default: 85 }, low: { type: 'integer', default: 80 } },
      { 'x-kubernetes-validations': [{ rule: 'self.low < self.high', message: 'low must be below high' }] },
    ),
  })
  assert.equal(refusal(schema, { kubelet: {} }), 'valid')
  assert.equal(
    refusal(schema, { kubelet: { low: 90 } }),
    `${refused}spec.kubelet: Invalid value: low must be below high`,
  )
})

test('transition rules in keyed lists follow the key', () => {
  const schema = object({
    items: {
      type: 'array',
      'x-kubernetes-list-type': 'map',
      'x-kubernetes-list-map-keys': ['name'],
      items: object(
        { name: { type: 'string' }, size: { type: 'integer' } },
        {
          required: ['name'],
          'x-kubernetes-validations': [{ rule: 'self.size >= oldSelf.size', message: 'only grows' }],
        },
      ),
    },
  })
  const old = {
    items: [
      { name: 'a', size: 5 },
      { name: 'b', size: 1 },
    ],
  }
  assert.equal(
    refusal(
      schema,
      {
        items: [
          { name: 'b', size: 2 },
          { name: 'a', size: 5 },
        ],
      },
      old,
    ),
    'valid',
  )
  assert.equal(
    refusal(
      schema,
      {
        items: [
          { name: 'c', size: 0 },
          { name: 'a', size: 4 },
        ],
      },
      old,
    ),
    `${refused}spec.items[1]: Invalid value: only grows`,
  )
})

test('a rule names its reason, its field and computes its message', () => {
  const schema = object(
    { size: { type: 'integer' } },
    {
      'x-kubernetes-validations': [
        {
          rule: 'self.size < 10',
          messageExpression: "'size is %d'.format([self.size])",
          reason: 'FieldValueForbidden',
          fieldPath: '.size',
        },
      ],
    },
  )
  assert.equal(refusal(schema, { size: 12 }), `${refused}spec.size: Forbidden: size is 12`)
})

test('an optional old value lets a rule tell create from update', () => {
  const schema = object(
    { size: { type: 'integer' } },
    {
      'x-kubernetes-validations': [
        {
          rule: '!oldSelf.hasValue() || self.size == oldSelf.value().size',
          message: 'fixed',
          optionalOldSelf: true,
        },
      ],
    },
  )
  assert.equal(refusal(schema, { size: 1 }), 'valid')
  assert.equal(refusal(schema, { size: 2 }, { size: 1 }), `${refused}spec: Invalid value: fixed`)
})

test('knows the functions Kubernetes adds to the language', () => {
  const holds = (rule: string): boolean => {
    const schema = object({ a: { type: 'string' } }, { 'x-kubernetes-validations': [{ rule }] })
    return refusal(schema, { a: 'x' }) === 'valid'
  }
  const rules = [
    "quantity('1.5Gi').isGreaterThan(quantity('1Gi'))",
    "isQuantity('10m') && !isQuantity('ten')",
    "quantity('2').add(1).compareTo(quantity('3')) == 0",
    "isURL('https://a.example/x') && url('https://a.example:81/x').getHostname() == 'a.example'",
    "sets.contains([1, 2, 3], [3, 1]) && sets.intersects(['a'], ['a', 'b'])",
    "'a-b-c'.replace('-', '.') == 'a.b.c' && 'abc123'.find('[0-9]+') == '123'",
    "['a', 'b'].isSorted() && ['b', 'a'].indexOf('a') == 1 && [1, 2].sum() == 3",
    "duration('1h') > duration('59m') && timestamp('2026-01-01T00:00:00Z').getFullYear() == 2026",
    "'%s=%d'.format(['n', 2]) == 'n=2' && 'A B'.lowerAscii().split(' ').join('-') == 'a-b'",
  ]
  assert.deepEqual(
    rules.filter((rule) => !holds(rule)),
    [],
  )
})

test('refuses schemas that are not structural and rules that do not compile', () => {
  const errors = (spec: JsonSchema): readonly string[] =>
    (compileCrd(aCrd(spec)).errors ?? []).map(fieldErrorText)
  const root = 'spec.versions[0].schema.openAPIV3Schema.properties[spec]'
  assert.deepEqual(errors(object({ a: {} })), [
    `${root}.properties[a].type: Required value: must not be empty for specified object fields`,
  ])
  assert.deepEqual(errors(object({ a: { type: 'array' } })), [
    `${root}.properties[a].items: Required value: must be specified`,
  ])
  assert.deepEqual(errors(object({ a: { type: 'integer', default: 'x' } })), [
    `${root}.properties[a].default: Invalid value: "string": ${root}.properties[a].default in body must be of type integer: "string"`,
  ])
  const rule = (text: string): string =>
    errors(object({}, { 'x-kubernetes-validations': [{ rule: text }] })).join()
  assert.match(rule('self.nope == 1'), /compilation failed: ERROR: undefined field 'nope'/)
  assert.match(rule('self +'), /compilation failed/)
  assert.match(rule('unknown(self)'), /compilation failed/)
  assert.match(rule('size(self)'), /must evaluate to a bool/)
})

test('refuses a definition under another name, or without one storage version', () => {
  const crd = aCrd(object({}))
  const misnamed = { ...crd, metadata: { name: 'x' } }
  assert.match(
    (compileCrd(misnamed).errors ?? []).map(fieldErrorText).join(),
    /must be spec\.names\.plural\+"\."\+spec\.group/,
  )
  const stored = (compileCrd(aCrd(object({}), { storage: false })).errors ?? []).map(fieldErrorText).join()
  assert.match(stored, /exactly one version marked as storage version/)
})

test('columns follow JSON paths with filters, dates are ages', () => {
  const definition = compiled(object({}), {
    additionalPrinterColumns: [
      { name: 'Ready', type: 'string', jsonPath: ".status.conditions[?(@.type=='Ready')].status" },
      { name: 'Nodes', type: 'integer', jsonPath: '.status.resources.nodes' },
      { name: 'Zone', type: 'string', jsonPath: '.metadata.labels.topology\\.kubernetes\\.io/zone' },
      { name: 'Age', type: 'date', jsonPath: '.metadata.creationTimestamp' },
    ],
  })
  const shown: StoredObject = {
    ...aPool({}),
    metadata: {
      name: 'a',
      creationTimestamp: '2026-01-01T00:00:00Z',
      labels: { 'topology.kubernetes.io/zone': 'z' },
    },
    status: {
      conditions: [
        { type: 'A', status: 'False' },
        { type: 'Ready', status: 'True' },
      ],
      resources: { nodes: 3 },
    },
  }
  const now = Date.parse('2026-01-01T01:00:00Z')
  assert.deepEqual(
    definition.columns.map((column) => column.cell(shown, now)),
    ['a', 'True', 3, 'z', '60m'],
  )
  assert.deepEqual(
    definition.columns.map((column) => column.cell(aPool({}), now)),
    ['a', null, null, null, null],
  )
})

test('serves the fields that may be selected', () => {
  const definition = compiled(object({ zone: { type: 'string' } }), {
    selectableFields: [{ jsonPath: '.spec.zone' }],
  })
  assert.deepEqual(definition.selectableFields(aPool({ zone: 'a' })), { 'spec.zone': 'a' })
})

test('rules without oldSelf are not asked about what an update shares with what is stored', () => {
  const item = object(
    { size: { type: 'integer' } },
    { 'x-kubernetes-validations': [{ rule: 'self.size > 3', message: 'too small' }] },
  )
  const definition = compiled(object({ items: { type: 'array', items: item } }))
  // Stored before there was the rule.
  const stored = aPool({ items: [{ size: 1 }] })
  assert.deepEqual(definition.validate({ ...stored, status: {} }, stored), [])
  const [error] = definition.validate(aPool({ items: [{ size: 1 }, { size: 2 }] }), stored)
  assert.match(fieldErrorText(error ?? assert.fail()), /too small/)
})

test('RPT-51 flags count from where they stand, and look-around is refused in the words of the server', () => {
  const name = object({ name: { type: 'string', pattern: '^(?i)[a-z]([-a-z0-9]*[a-z0-9])?$' } })
  assert.equal(refusal(name, { name: 'ABC' }), 'valid')
  const errors = compileCrd(aCrd(object({ name: { type: 'string', pattern: '(?=x)' } }))).errors ?? []
  assert.deepEqual(errors.map(fieldErrorText), [
    'spec.versions[0].schema.openAPIV3Schema.properties[spec].properties[name].pattern: Invalid value: "(?=x)": ' +
      "must be a valid regular expression, but isn't: error parsing regexp: invalid or unsupported Perl syntax: `(?=`",
  ])
})

test('RPT-51 a pattern that backtracks elsewhere answers at once, in patterns and in rules', () => {
  const slow = '(a+)+$'
  const definition = compiled(
    object({
      pattern: { type: 'string', pattern: slow },
      rule: { type: 'string', 'x-kubernetes-validations': [{ rule: `self.matches('${slow}')` }] },
      found: { type: 'string', 'x-kubernetes-validations': [{ rule: `self.find('${slow}') != ''` }] },
    }),
  )
  const text = `${'a'.repeat(100_000)}b`
  const slowest = aPool({ pattern: text, rule: text, found: text })
  const runsMs = Array.from({ length: 5 }, () => {
    const start = process.threadCpuUsage()
    assert.deepEqual(
      definition.validate(slowest, undefined).map(({ field }) => field),
      ['spec.pattern', 'spec.rule', 'spec.found'],
    )
    return process.threadCpuUsage(start).user / 1000
  })
  const fastestMs = Math.min(...runsMs)
  assert.ok(fastestMs < 150, `${fastestMs} ms for three expressions`)
})

test('RPT-55 a field may have a type beside x-kubernetes-int-or-string; both kinds of value are valid', () => {
  const port = object({ port: { type: 'integer', 'x-kubernetes-int-or-string': true } })
  assert.equal(refusal(port, { port: 80 }), 'valid')
  assert.equal(refusal(port, { port: 'http' }), 'valid')
  assert.equal(refusal(port, { port: true }).includes('must be of type integer,string'), true)
  const text = object({ port: { type: 'string', 'x-kubernetes-int-or-string': true } })
  assert.equal(refusal(text, { port: 80 }), 'valid')
})

test('RPT-55 the one combination that may say types may do so without the flag', () => {
  const anyOf = [{ type: 'integer' }, { type: 'string' }]
  assert.equal(compileCrd(aCrd(object({ a: { type: 'integer', anyOf } }))).errors, undefined)
  assert.equal(compileCrd(aCrd(object({ a: { type: 'integer', allOf: [{ anyOf }] } }))).errors, undefined)
  const other = object({ a: { type: 'integer', anyOf: [{ type: 'string' }, { type: 'integer' }] } })
  assert.equal(compileCrd(aCrd(other)).errors?.length, 2)
})

test('RPT-53 has() looks into what calls and indexes answer', () => {
  const rule =
    'has(self.items[0].name) && !has(self.items[1].name) && has(self.items.filter(i, i.size == 2)[0].size)'
  const item = object({ name: { type: 'string' }, size: { type: 'integer' } })
  const items = object(
    { items: { type: 'array', maxItems: 5, items: item } },
    {
      'x-kubernetes-validations': [{ rule }],
    },
  )
  assert.equal(refusal(items, { items: [{ name: 'a', size: 1 }, { size: 2 }] }), 'valid')
})
