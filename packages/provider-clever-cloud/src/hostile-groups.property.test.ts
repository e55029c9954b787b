/** NodeGroups that nobody's schema would let in, beside ordinary ones: they stop nothing and nobody loses a node. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { karpenterKinds, type KubeObject, kinds, type NewObject } from '@tenon/api'
import * as fc from 'fast-check'
import { ownNames, platformLabels } from './names.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'
import { aClaim, Stage } from './testing/stage.test-support.ts'
import { statuses } from './testing/fake-platform.test-support.ts'

const minute = 60_000

/** What another program may have written where a value is expected. */
const junk = fc.constantFrom<unknown>(
  null,
  undefined,
  '',
  'true',
  0,
  -1,
  2.5,
  1e300,
  [],
  [null],
  {},
  { a: null },
  true,
)

const conditions = fc.array(
  fc.oneof(
    junk,
    fc.record({
      type: fc.constantFrom('Ready', 'ReconcileFailed', 'ReconcileInProgress', '', 7),
      status: fc.constantFrom('True', 'False', 'true', true, null),
      reason: fc.oneof(junk, fc.constant('QuotaExceeded'), fc.constant('UpstreamError')),
      message: fc.oneof(junk, fc.constant('x'.repeat(5000))),
    }),
  ),
  { maxLength: 4 },
)

const status = fc.oneof(
  junk,
  fc.record({ phase: fc.oneof(junk, fc.constant('QuotaExceeded')), conditions: fc.oneof(junk, conditions) }),
)

const spec = fc.oneof(
  junk,
  fc.record({
    flavor: fc.oneof(junk, fc.constantFrom('M', 'constructor', '__proto__', 'XXL')),
    nodeCount: fc.oneof(junk, fc.constantFrom(1, 3)),
    labels: junk,
    taints: junk,
  }),
)

/** The API server itself holds metadata to its schema: every value is a string, whatever it says. */
const metadata = fc.record({
  labels: fc.option(
    fc.dictionary(
      fc.constantFrom(ownNames.managed, ownNames.nodeClaim, ownNames.nodePool, ownNames.nodeClass),
      fc.constantFrom('true', 'false', '', 'alive', 'gone', 'constructor', '__proto__'),
    ),
    { nil: undefined },
  ),
  annotations: fc.option(
    fc.dictionary(fc.constantFrom(ownNames.hash, ownNames.hashVersion), fc.constantFrom('', '1', 'v1', 'v9')),
    { nil: undefined },
  ),
  ownerReferences: fc.option(
    fc.array(
      fc.record({
        apiVersion: fc.constantFrom(
          'v1',
          'karpenter.sh/v1',
          'karpenter.sh/v1beta1',
          'karpenter.sh.example.com/v1',
        ),
        kind: fc.constantFrom('NodeClaim', 'NodePool', 'Deployment'),
        name: fc.constantFrom('alive', 'gone', 'other'),
        uid: fc.constantFrom('uid-alive', 'uid-gone', 'another'),
      }),
      { maxLength: 3 },
    ),
    { nil: undefined },
  ),
})

const hostile = fc.array(fc.record({ metadata, spec, status }), { minLength: 1, maxLength: 6 })

interface Hostile {
  readonly metadata: object
  readonly spec: unknown
  readonly status: unknown
}

/** @returns whether an owner, or else nothing, says that it is the group of a claim which is gone. */
function mayGo({ metadata: { labels = {}, ownerReferences = [], name } }: KubeObject): boolean {
  const owners = ownerReferences.filter(
    ({ apiVersion, kind }) => kind === 'NodeClaim' && apiVersion.startsWith('karpenter.sh/'),
  )
  const labelled = labels[ownNames.nodeClaim] ?? ''
  const names = [labelled === '' ? name : labelled, ...owners.map((owner) => owner.name)]
  return labels[ownNames.managed] === 'true' && owners.length > 0 && !names.includes('alive')
}

/** A group with its node, as hostile as the group. */
function putHostile(
  stage: Stage,
  { metadata: own, spec: wanted, status: is }: Hostile,
  index: number,
): NodeGroup {
  const name = `hostile-${index}`
  stage.kube.put(kinds.node, {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name: `${name}-node0`,
      labels: {
        [platformLabels.nodeGroup]: name,
        [platformLabels.flavor]: 'M',
        [platformLabels.role]: 'worker',
      },
    },
  })
  const creationTimestamp = new Date(stage.clock.now() - 10 * minute).toISOString()
  const object = {
    apiVersion: 'api.clever-cloud.com/v1',
    kind: 'NodeGroup',
    metadata: { ...own, name, creationTimestamp },
    ...(wanted !== undefined && { spec: wanted }),
    ...(is !== undefined && { status: is }),
  }
  return stage.kube.put(nodeGroupKind, object as NewObject<NodeGroup>)
}

const owned = (name: string, creationTimestamp: string): NewObject<NodeGroup> => ({
  apiVersion: 'api.clever-cloud.com/v1',
  kind: 'NodeGroup',
  metadata: {
    name,
    creationTimestamp,
    labels: { [ownNames.managed]: 'true', [ownNames.nodeClaim]: name },
    ownerReferences: [{ apiVersion: 'karpenter.sh/v1', kind: 'NodeClaim', name, uid: `uid-${name}` }],
  },
  spec: { flavor: 'S', nodeCount: 1 },
  status: statuses.ready,
})

test('groups with half a status, wrong types or foreign owners stop neither launches nor sweeps', async () => {
  await fc.assert(
    fc.asyncProperty(hostile, async (groups) => {
      const stage = new Stage()
      const old = new Date(stage.clock.now() - 10 * minute).toISOString()
      stage.kube.put(karpenterKinds.nodeClaim, aClaim('alive'))
      stage.kube.put(nodeGroupKind, owned('alive', old))
      stage.kube.put(nodeGroupKind, owned('orphan', old))
      const put = groups.map((group, index) => putHostile(stage, group, index))
      const stop = new AbortController()
      stage.provider.startControllers(stop.signal)
      await stage.clock.advance(5 * minute)
      assert.deepEqual(stage.logged('error'), [])
      const left = new Set(stage.platform.groups().map(({ metadata: { name } }) => name))
      assert.ok(left.has('alive'))
      assert.ok(!left.has('orphan'), 'the sweep ends at another group')
      for (const group of put)
        if (!left.has(group.metadata.name)) assert.ok(mayGo(group), JSON.stringify(group.metadata))
      const instances = await stage.provider.list()
      assert.ok(instances.some(({ providerID }) => providerID === 'clevercloud://alive'))
      for (const { providerID } of instances) await stage.provider.get(providerID).catch(() => undefined)
      const { providerID } = await stage.launch(aClaim('fresh'))
      assert.equal(providerID, 'clevercloud://fresh')
      stop.abort()
    }),
    { numRuns: Number(process.env['TENON_RUNS'] ?? 100) },
  )
})

test('a launch meets a group of its name that it may not touch, whatever is in it', async () => {
  await fc.assert(
    fc.asyncProperty(fc.record({ metadata, spec, status }), async (group) => {
      const stage = new Stage()
      const present = putHostile(stage, group, 0)
      const before = JSON.stringify(present)
      const claim = aClaim(present.metadata.name)
      const outcome = await stage.launch(claim).then(
        () => 'launched',
        (error: unknown) => (error instanceof Error ? error.name : 'thrown'),
      )
      assert.equal(outcome, 'ProviderError')
      assert.equal(JSON.stringify(stage.platform.group(present.metadata.name)), before)
    }),
  )
})
