/** Names, objects and clocks that nobody here chose, on every tab and at every size. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import type { KubeObject, Node, NodeClaim, NodePool, Pod } from '@tenon/api'
import { SystemClock } from '@tenon/runtime'
import * as fc from 'fast-check'
import stringWidth from 'string-width'
import { ConsoleModel } from '../model/model.ts'
import { keysIn } from './keys.ts'
import { paintWith } from './paint.ts'
import { Viewer } from './viewer.ts'

const nowMs = Date.parse('2026-11-27T12:00:00Z')

const name = fc.oneof(
  fc.constantFrom(
    'n1',
    'x'.repeat(253),
    '__proto__',
    'constructor',
    'toString',
    '',
    '<img src=x onerror=alert(1)>',
    'שלום-מחשב-12',
    'عقدة\u202e-txt.exe',
    '\u001b[31mred\u001b[0m\u0007\r\n',
    '👩‍👩‍👧‍👦-🇨🇭-1️⃣',
    'e\u0301\u0301\u0301',
    '\ud800',
    'a\tb\u0000c',
  ),
  fc.string({ unit: 'binary', maxLength: 30 }),
  fc.string({ unit: 'grapheme', maxLength: 30 }),
)
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const quantity = fc.constantFrom('0', '1', '250m', '4Gi', '-1', '1e3', '9007199254740993', 'many', '')
const amounts = fc.dictionary(fc.oneof(fc.constantFrom('cpu', 'memory', 'pods'), name), quantity, {
  maxKeys: 4,
})
/** Clocks differ: what is of tomorrow has no age. */
const time = fc.constantFrom(
  '2026-11-27T11:00:00Z',
  '2031-01-01T00:00:00Z',
  '1969-12-31T23:59:59Z',
  'soon',
  '',
)
const keyOfLabels = fc.oneof(
  fc.constantFrom(
    'karpenter.sh/nodepool',
    'node.kubernetes.io/instance-type',
    'topology.kubernetes.io/zone',
    'team',
  ),
  name,
)
const metadata = fc
  .record({
    name,
    labels: maybe(fc.dictionary(keyOfLabels, name, { maxKeys: 5 })),
    creationTimestamp: maybe(time),
  })
  .map(({ creationTimestamp, labels, name: own }) => ({
    name: own,
    ...(labels !== undefined && { labels }),
    ...(creationTimestamp !== undefined && { creationTimestamp }),
  }))
const conditions = fc.array(
  fc.record({
    type: fc.constantFrom('Ready', 'Launched', 'Registered', 'Initialized', 'Drifted', 'PodScheduled'),
    status: fc.constantFrom('True', 'False', 'Unknown'),
    reason: name,
    message: name,
    lastTransitionTime: time,
  }),
  { maxLength: 3 },
)

const aNode = fc
  .record({ metadata, providerID: maybe(name), allocatable: maybe(amounts), conditions: maybe(conditions) })
  .map(
    ({ allocatable, conditions: told, metadata: own, providerID }): Node => ({
      apiVersion: 'v1',
      kind: 'Node',
      metadata: own,
      ...(providerID !== undefined && { spec: { providerID } }),
      status: {
        ...(allocatable !== undefined && { allocatable }),
        ...(told !== undefined && { conditions: told }),
      },
    }),
  )
const aClaim = fc.record({ metadata, providerID: maybe(name), conditions: maybe(conditions) }).map(
  ({ conditions: told, metadata: own, providerID }): NodeClaim => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodeClaim',
    metadata: own,
    spec: { nodeClassRef: { group: '', kind: '', name: own.name }, requirements: [] },
    status: {
      ...(providerID !== undefined && { providerID }),
      ...(told !== undefined && { conditions: told }),
    },
  }),
)
const aPool = metadata.map(
  (own): NodePool => ({
    apiVersion: 'karpenter.sh/v1',
    kind: 'NodePool',
    metadata: own,
    spec: { template: { spec: { nodeClassRef: { group: 'g', kind: 'K', name: 'c' }, requirements: [] } } },
  }),
)
const aPod = fc
  .record({
    metadata,
    namespace: maybe(name),
    node: maybe(name),
    requests: maybe(amounts),
    phase: maybe(fc.constantFrom('Pending', 'Running', 'Failed')),
    conditions: maybe(conditions),
  })
  .map(
    ({ conditions: told, metadata: own, namespace, node, phase, requests }): Pod => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...own, ...(namespace !== undefined && { namespace }) },
      spec: {
        ...(node !== undefined && { nodeName: node }),
        containers: [{ name: 'c', ...(requests !== undefined && { resources: { requests } }) }],
      },
      status: { ...(phase !== undefined && { phase }), ...(told !== undefined && { conditions: told }) },
    }),
  )

const cluster = fc.record({
  nodes: fc.array(aNode, { maxLength: 4 }),
  nodeclaims: fc.array(aClaim, { maxLength: 4 }),
  nodepools: fc.array(aPool, { maxLength: 3 }),
  pods: fc.array(aPod, { maxLength: 6 }),
  /** Of whom nobody tells anything: another autoscaler, or none. */
  hasTenon: fc.boolean(),
  message: name,
})

type Cluster = typeof cluster extends fc.Arbitrary<infer T> ? T : never

function modelOf({ hasTenon, message, ...objects }: Cluster): ConsoleModel {
  const model = new ConsoleModel()
  for (const [resource, all] of Object.entries(objects) as readonly [
    'nodes' | 'nodeclaims' | 'nodepools' | 'pods',
    readonly KubeObject[],
  ][])
    model.apply({ kind: 'replaced', resource, objects: all })
  if (!hasTenon) {
    for (const what of ['journal', 'decisions']) model.apply({ kind: 'absent', what, why: message })
    return model
  }
  const at = '2031-01-01T00:00:00Z'
  const [nodeClaim = '', nodePool = ''] = [
    objects.nodeclaims[0]?.metadata.name,
    objects.nodepools[0]?.metadata.name,
  ]
  model.apply({
    kind: 'decisions',
    decisions: [{ nodeClaim, nodePool, cause: 'policy', message, at, until: at }],
  })
  model.apply({
    kind: 'journal',
    entries: [
      { id: message, at, kind: 'failure', reason: message, message, nodeClaims: [nodeClaim], nodes: [] },
    ],
  })
  return model
}

function viewerOf(model: ConsoleModel): Viewer {
  return new Viewer(
    model,
    {
      explain: () => Promise.resolve([]),
      yaml: () => Promise.resolve([]),
      commandOf: () => 'kubectl',
      act: () => Promise.resolve(''),
    },
    {
      paint: paintWith('256'),
      matcher: () => () => true,
      resources: ['cpu', 'memory'],
      extraLabels: ['team'],
      hasPricing: true,
      sorting: { by: 'age', isReversed: true },
      readOnly: undefined,
      source: 'a source',
      fixedNowMs: nowMs,
    },
    new SystemClock(),
  )
}

const keys = fc.constantFrom(
  'j',
  'k',
  '\r',
  '\u001b',
  'd',
  'y',
  '\u0017',
  '\u001a',
  'N',
  'A',
  'S',
  'C',
  'b',
  '?',
  'u',
  'r',
  'p',
  '\u0004',
  ':claims\r',
  ':pools\r',
  ':pods\r',
  ':decisions\r',
  ':cost owner\r',
  ':nodes\r',
  '/a\r',
  '/!a\r',
  '/-f ab\r',
  ':',
)

test('CON-10 whatever objects are called and lack, every line fits the screen and gives it no orders', () => {
  const sizes = fc.record({
    columns: fc.integer({ min: 60, max: 200 }),
    rows: fc.integer({ min: 16, max: 50 }),
  })
  fc.assert(
    fc.property(cluster, fc.array(keys, { maxLength: 12 }), sizes, (objects, pressed, size) => {
      const viewer = viewerOf(modelOf(objects))
      for (const text of ['', ...pressed]) {
        for (const key of keysIn(text)) viewer.press(key, size)
        const lines = viewer.frame(size)
        assert.equal(lines.length, size.rows)
        for (const line of lines) {
          const shown = stripVTControlCharacters(line)
          assert.ok(stringWidth(shown) <= size.columns, `${stringWidth(shown)}: ${JSON.stringify(shown)}`)
          assert.doesNotMatch(shown, /[\p{Cc}\p{Bidi_Control}]/u)
        }
      }
    }),
    { numRuns: 150 },
  )
})
