import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { type Condition, karpenterKinds, labels, type NodeClaim } from '@tenon/api'
import { KubeError } from '@tenon/kube'
import type { OfferingNews } from '@tenon/provider'
import { Listeners, silentLogger } from '@tenon/runtime'
import { FollowUp } from './follow-up.ts'
import { GarbageCollection } from './garbage-collection.ts'
import { Refusals } from './launch/refusals.ts'
import { ownNames } from './names.ts'
import { cleverNodeClassKind } from './nodeclass/types.ts'
import { type NodeGroup, nodeGroupKind } from './nodegroup/types.ts'
import { aClaim, Stage } from './testing/stage.test-support.ts'

const minute = 60_000

class Sweeps extends Stage {
  readonly followUp = new FollowUp({
    kube: this.kube,
    caches: {
      nodeGroups: () => this.kube.cache(nodeGroupKind),
      nodeClaims: this.kube.cache(karpenterKinds.nodeClaim),
    },
    outcomes: {
      refusals: new Refusals({
        region: 'par',
        sizes: () => this.catalogue.sizes(),
        events: this.kube.recorder,
        metrics: this.metrics,
      }),
      news: new Listeners<OfferingNews>(),
    },
    metrics: this.metrics,
    events: this.kube.recorder,
    clock: this.clock,
  })
  readonly garbage = new GarbageCollection({
    kube: this.kube,
    followUp: this.followUp,
    nodeClasses: this.kube.cache(cleverNodeClassKind),
    metrics: this.metrics,
    events: this.kube.recorder,
    clock: this.clock,
    logger: silentLogger,
  })

  async sweep(): Promise<number> {
    const result = await this.settled(this.garbage.run(new AbortController().signal))
    return result.kind === 'after' ? result.delayMs : assert.fail(result.kind)
  }

  /** A group of ten minutes ago, owned by the claim `gone` unless said otherwise. */
  put(name: string, metadata: Partial<NodeGroup['metadata']> = {}, nodeCount = 1): void {
    this.kube.put(nodeGroupKind, {
      apiVersion: 'api.clever-cloud.com/v1',
      kind: 'NodeGroup',
      metadata: {
        name,
        labels: { [ownNames.managed]: 'true', [ownNames.nodeClaim]: 'gone' },
        ownerReferences: [owner()],
        creationTimestamp: this.ago(10),
        ...metadata,
      },
      spec: { flavor: 'S', nodeCount },
    })
  }

  ago(minutes: number): string {
    return new Date(this.clock.now() - minutes * minute).toISOString()
  }

  names(): readonly string[] {
    return this.platform.groups().map(({ metadata }) => metadata.name)
  }

  /** A launched claim of ten minutes ago. */
  putClaim(name: string, parts: Partial<NodeClaim> = {}, ...conditions: readonly string[]): void {
    const claim = aClaim(name)
    this.kube.put(karpenterKinds.nodeClaim, {
      ...claim,
      status: {
        providerID: `clevercloud://${name}`,
        conditions: ['Launched', ...conditions].map(
          (type): Condition => ({
            type,
            status: 'True',
            reason: type,
            message: '',
            lastTransitionTime: this.ago(10),
          }),
        ),
      },
      ...parts,
      metadata: {
        ...claim.metadata,
        labels: { ...claim.metadata.labels, [labels.instanceType]: 'S' },
        creationTimestamp: this.ago(10),
        ...parts.metadata,
      },
    })
  }
}

const owner = (name = 'gone', kind = 'NodeClaim', apiVersion = 'karpenter.sh/v1') => ({
  apiVersion,
  kind,
  name,
  uid: `uid-${name}`,
})

describe('NodeGroups without a claim', () => {
  test('CLV-70 an orphan is deleted, and the next sweep is in two minutes', async () => {
    const stage = new Sweeps()
    stage.put('orphan')
    assert.equal(await stage.sweep(), 2 * minute)
    assert.deepEqual(stage.names(), [])
    assert.equal(stage.value('reaped'), 1)
    assert.deepEqual(stage.events(), ['GarbageCollected orphan'])
  })

  test('CLV-71 a group stays whose claim lives, that is young, or that is going', async () => {
    const stage = new Sweeps()
    stage.kube.put(karpenterKinds.nodeClaim, aClaim('gone'))
    stage.put('of-a-claim')
    assert.equal(await stage.sweep(), 2 * minute)
    await stage.kube.delete(karpenterKinds.nodeClaim, { name: 'gone' })
    await stage.platform.remove('of-a-claim')
    stage.put('young', { creationTimestamp: stage.ago(1.9) })
    stage.put('going', { deletionTimestamp: stage.ago(1), finalizers: ['api.clever-cloud.com/nodes'] })
    await stage.sweep()
    assert.deepEqual(stage.names(), ['young', 'going'])
    assert.deepEqual(stage.events(), [])
  })

  test('CLV-72 without the label of a claim, the group is called like it', async () => {
    const stage = new Sweeps()
    stage.kube.put(karpenterKinds.nodeClaim, aClaim('one'))
    stage.put('one', { labels: { [ownNames.managed]: 'true' }, ownerReferences: [owner('other')] })
    await stage.sweep()
    assert.deepEqual(stage.names(), ['one'])
  })

  const unclear: readonly (readonly [string, NodeGroup['metadata']['ownerReferences']])[] = [
    ['CLV-73 no owner', []],
    ['CLV-74 a living owner of another name', [owner('gone'), owner('lives')]],
    ['CLV-75 an owner that is a NodePool', [owner('gone', 'NodePool')]],
    ['CLV-75 an owner of another API group', [owner('gone', 'NodeClaim', 'karpenter.sh.example.com/v1')]],
  ]
  for (const [title, ownerReferences] of unclear) {
    test(`${title}: the group is kept, and each sweep says so`, async () => {
      const stage = new Sweeps()
      stage.kube.put(karpenterKinds.nodeClaim, aClaim('lives'))
      stage.put('unclear', { ...(ownerReferences && { ownerReferences }) })
      await stage.sweep()
      await stage.sweep()
      assert.deepEqual(stage.names(), ['unclear'])
      assert.equal(stage.value('refused'), 1)
      assert.deepEqual(stage.events(), [
        'GarbageCollectionRefused unclear',
        'GarbageCollectionRefused unclear',
      ])
      assert.equal(stage.kube.events[0]?.dedupeTtlMs, 60 * minute)
      await stage.platform.remove('unclear')
      await stage.sweep()
      assert.equal(stage.value('refused'), 0)
    })
  }

  test('CLV-76 an owner of an earlier version of the API counts', async () => {
    const stage = new Sweeps()
    stage.put('orphan', { ownerReferences: [owner('gone', 'NodeClaim', 'karpenter.sh/v1beta1')] })
    await stage.sweep()
    assert.deepEqual(stage.names(), [])
  })

  for (const [title, hidden] of [
    ['by its label', 'gone'],
    ['by its owner reference', 'renamed'],
  ] as const) {
    test(`CLV-77 RPT-27 a claim that a list does not show keeps its group (${title})`, async () => {
      const stage = new Sweeps()
      stage.kube.put(karpenterKinds.nodeClaim, aClaim(hidden))
      stage.put('one', { ownerReferences: [owner('renamed')] })
      const list = stage.kube.list.bind(stage.kube)
      stage.kube.list = async (type, options) =>
        type.plural === karpenterKinds.nodeClaim.plural ? [] : await list(type, options)
      await stage.sweep()
      assert.deepEqual(stage.names(), ['one'])
      assert.equal(stage.value('reaped'), 0)
    })
  }

  test('CLV-78 one that cannot be deleted does not hold up the others, and the sweep tells', async () => {
    const stage = new Sweeps()
    // A sweep of few among many: what is more than a fifth of all goes slowly.
    for (let i = 0; i < 20; i++) {
      stage.kube.put(karpenterKinds.nodeClaim, aClaim(`claim-${i}`))
      stage.put(`claim-${i}`, {
        labels: { [ownNames.managed]: 'true' },
        ownerReferences: [owner(`claim-${i}`)],
      })
    }
    stage.put('first')
    stage.put('second')
    const error = new KubeError('server', 500, 'no')
    stage.kube.failures.push({ verb: 'delete', plural: nodeGroupKind.plural, error })
    stage.put('big', {}, 3)
    await assert.rejects(stage.sweep(), AggregateError)
    assert.deepEqual(
      stage.names().filter((name) => !name.startsWith('claim-')),
      ['first'],
    )
    assert.equal(stage.value('externalResizes'), 1)
    await stage.sweep()
    assert.equal(stage.names().length, 20)
  })

  test('RPT-27 an empty list of claims deletes no fleet', async () => {
    const stage = new Sweeps()
    for (let i = 0; i < 10; i++)
      stage.put(`group-${i}`, {
        labels: { [ownNames.managed]: 'true' },
        ownerReferences: [owner(`group-${i}`)],
      })
    await stage.sweep()
    assert.equal(stage.names().length, 10)
    assert.deepEqual(stage.events(), ['NodeGroupSweepHeld default'])
  })

  test('CLV-81 a group that was resized is told and left alone', async () => {
    const stage = new Sweeps()
    stage.kube.put(karpenterKinds.nodeClaim, aClaim('gone'))
    stage.put('one', {}, 3)
    await stage.sweep()
    assert.equal(stage.value('externalResizes'), 1)
    const [event] = stage.kube.events
    assert.equal(event?.reason, 'NodeGroupExternallyResized')
    assert.match(event.message, /kubectl scale nodegroup one --replicas=1/)
    assert.match(event.message, /autoscalingEnabled/)
    assert.equal(stage.platform.group('one')?.spec.nodeCount, 3)
    stage.put('one', {}, 1)
    await stage.sweep()
    assert.equal(stage.value('externalResizes'), 0)
  })
})

describe('claims whose NodeGroup is gone', () => {
  const left = (stage: Sweeps) =>
    stage.kube.all(karpenterKinds.nodeClaim).map(({ metadata }) => metadata.name)

  test('CLV-79 a launched claim that never registered is deleted', async () => {
    const stage = new Sweeps()
    stage.putClaim('one')
    await stage.sweep()
    assert.deepEqual(left(stage), [])
    assert.equal(stage.value('vanished'), 1)
    assert.deepEqual(stage.events(), ['NodeGroupVanished one'])
  })

  const kept: readonly (readonly [string, (stage: Sweeps) => void])[] = [
    [
      'young',
      (stage) => {
        stage.putClaim('one', { metadata: { ...aClaim('one').metadata, creationTimestamp: stage.ago(1.9) } })
      },
    ],
    [
      'registered',
      (stage) => {
        stage.putClaim('one', {}, 'Registered')
      },
    ],
    [
      'not launched',
      (stage) => {
        stage.putClaim('one', { status: {} })
      },
    ],
    [
      'of another provider',
      (stage) => {
        const { spec } = aClaim('one')
        const nodeClassRef = { ...spec.nodeClassRef, group: 'karpenter.exoscale.com' }
        stage.putClaim('one', { spec: { ...spec, nodeClassRef } })
      },
    ],
    [
      'without a readable spec',
      (stage) => {
        stage.putClaim('one', JSON.parse('{"spec":{}}') as Partial<NodeClaim>)
      },
    ],
    [
      'with a group that has lost its labels',
      (stage) => {
        stage.putClaim('one')
        stage.put('one', { labels: {}, ownerReferences: [] })
      },
    ],
  ]
  for (const [title, given] of kept) {
    test(`CLV-80 one that is ${title} is kept`, async () => {
      const stage = new Sweeps()
      given(stage)
      await stage.sweep()
      assert.deepEqual(left(stage), ['one'])
    })
  }

  test('RPB-25 however many there are, all go in one sweep', async () => {
    const stage = new Sweeps()
    const names = Array.from({ length: 20 }, (_, i) => `claim-${i}`)
    for (const name of names) stage.putClaim(name)
    await stage.sweep()
    assert.deepEqual(left(stage), [])
    assert.equal(stage.value('vanished'), 20)
    assert.ok(stage.events().every((event) => event.startsWith('NodeGroupVanished ')))
  })

  test('RPB-25 RPB-43 what may not be swept at all is not swept one by one either', async () => {
    const stage = new Sweeps()
    stage.garbage.guards[1].gate = () => 'another cluster'
    stage.putClaim('one')
    await stage.sweep()
    assert.deepEqual(left(stage), ['one'])
    assert.deepEqual(stage.events(), ['NodeClaimSweepHeld default'])
  })

  test('RPT-27 an empty list of NodeGroups lets no claim go', async () => {
    const stage = new Sweeps()
    stage.putClaim('one')
    stage.put('one', { labels: { [ownNames.managed]: 'true' }, ownerReferences: [owner('one')] })
    const list = stage.kube.list.bind(stage.kube)
    stage.kube.list = async (type, options) =>
      type.plural === nodeGroupKind.plural ? [] : await list(type, options)
    await stage.sweep()
    assert.deepEqual(left(stage), ['one'])
  })
})
