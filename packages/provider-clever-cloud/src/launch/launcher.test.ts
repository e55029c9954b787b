import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { karpenterKinds, labels, type NodeClaim } from '@tenon/api'
import { type KubeClient, KubeError } from '@tenon/kube'
import { isProviderError, type ProviderError } from '@tenon/provider'
import { readOverrides } from '../catalogue/overrides.ts'
import { ownNames, platformLabels } from '../names.ts'
import { cleverNodeClassKind } from '../nodeclass/types.ts'
import { type NodeGroup, nodeGroupKind } from '../nodegroup/types.ts'
import { statuses } from '../testing/fake-platform.test-support.ts'
import { aClaim, aNodeClass, readiness, Stage } from '../testing/stage.test-support.ts'

/** What a launch is rejected with. */
async function rejected(stage: Stage, claim: NodeClaim): Promise<ProviderError> {
  const error: unknown = await stage.launch(claim).then(
    () => assert.fail('it is rejected'),
    (reason: unknown) => reason,
  )
  return isProviderError(error) ? error : assert.fail(String(error))
}

const owner = (claim: NodeClaim, apiVersion = 'karpenter.sh/v1') => ({
  apiVersion,
  kind: 'NodeClaim',
  name: claim.metadata.name,
  uid: claim.metadata.uid ?? '',
})

/** A group that is there before its claim is launched. */
function put(stage: Stage, name: string, metadata: Partial<NodeGroup['metadata']>, flavor = 'M'): void {
  stage.kube.put(nodeGroupKind, {
    apiVersion: 'api.clever-cloud.com/v1',
    kind: 'NodeGroup',
    metadata: { name, ...metadata },
    spec: { flavor, nodeCount: 1 },
    status: statuses.ready,
  })
}

test('a claim whose own NodeGroup is still being deleted is given up, and no flavor is blamed', async () => {
  const stage = new Stage()
  stage.platform.answer = () => statuses.refused('FlavorUnavailable')
  const claim = aClaim('one')
  const refused = await rejected(stage, claim)
  assert.deepEqual(
    refused.offerings.map(({ instanceType }) => instanceType),
    ['2XS'],
  )
  const again = await rejected(stage, claim)
  assert.equal(again.kind, 'insufficientCapacity')
  assert.match(again.message, /NodeGroup one is being deleted; a NodeClaim with another name/)
  assert.deepEqual([again.offerings, again.blames], [[], { what: 'nothing' }])
})

describe('the choice of a flavor', () => {
  test('CLV-1 the cheapest flavor that fits, as a node of the region', async () => {
    const stage = new Stage()
    const instance = await stage.launch(aClaim('one'))
    assert.equal(stage.platform.group('one')?.spec.flavor, '2XS')
    assert.equal(instance.providerID, 'clevercloud://one')
    assert.equal(instance.labels[labels.zone], 'par')
    assert.equal(instance.labels[labels.capacityType], 'on-demand')
  })

  test('CLV-2 a request of 10Gi takes S', async () => {
    const stage = new Stage()
    await stage.launch(aClaim('one', { memory: '10Gi' }))
    assert.equal(stage.platform.group('one')?.spec.flavor, 'S')
  })

  test('CLV-3 no flavor is large enough: no NodeGroup', async () => {
    const stage = new Stage()
    const error = await rejected(stage, aClaim('one', { memory: '100Gi' }))
    assert.equal(error.kind, 'insufficientCapacity')
    assert.deepEqual(stage.platform.groups(), [])
  })

  test('CLV-4 among flavors of one price the earlier one is taken', async () => {
    const { ok } = readOverrides('[{name: XS, priceHourly: 1}, {name: 2XS, priceHourly: 1}]')
    assert.ok(ok !== undefined)
    const stage = new Stage({ overrides: ok })
    await stage.launch(aClaim('one', { flavors: ['XS', '2XS'] }))
    assert.equal(stage.platform.group('one')?.spec.flavor, '2XS')
  })

  test('CLV-5 a class without conditions is not ready', async () => {
    const stage = new Stage()
    const { status: _none, ...bare } = aNodeClass()
    stage.kube.put(cleverNodeClassKind, bare)
    assert.equal((await rejected(stage, aClaim('one'))).kind, 'nodeClassNotReady')
    stage.kube.put(
      cleverNodeClassKind,
      aNodeClass({ status: { conditions: [readiness('Unknown', 'wait')] } }),
    )
    const error = await rejected(stage, aClaim('one'))
    assert.match(error.message, /CleverNodeClass default is not ready: wait$/)
    assert.deepEqual(stage.platform.groups(), [])
  })

  test('CLV-6 a class that does not exist', async () => {
    const stage = new Stage()
    await stage.kube.delete(cleverNodeClassKind, { name: 'default' })
    assert.equal((await rejected(stage, aClaim('one'))).kind, 'insufficientCapacity')
  })

  test('CLV-98 a requirement of which no flavor says anything excludes none', async () => {
    const stage = new Stage()
    const claim = aClaim('one')
    const requirements = [...claim.spec.requirements, { key: 'team', operator: 'In' as const, values: ['a'] }]
    await stage.launch({ ...claim, spec: { ...claim.spec, requirements } })
    assert.equal(stage.platform.groups().length, 1)
  })
})

describe('the NodeGroup of a claim', () => {
  test('CLV-7 its content', async () => {
    const stage = new Stage()
    const claim = aClaim('one')
    await stage.launch(claim)
    const group = stage.platform.group('one')
    assert.equal(group?.spec.nodeCount, 1)
    assert.deepEqual(group.metadata.labels, {
      [ownNames.managed]: 'true',
      [ownNames.nodeClaim]: 'one',
      [ownNames.nodePool]: 'default',
      [ownNames.nodeClass]: 'default',
    })
    assert.deepEqual(group.metadata.annotations, {
      [ownNames.hash]: '7038317156814165261',
      [ownNames.hashVersion]: 'v1',
    })
    assert.deepEqual(group.metadata.ownerReferences, [owner(claim)])
    assert.deepEqual(group.spec.taints, [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }])
  })

  test('CLV-8 only labels that the platform takes go with it', async () => {
    const stage = new Stage()
    const own = {
      'kubernetes.io/a': 'x',
      'node.kubernetes.io/b': 'x',
      'clever-cloud.com/c': 'x',
      [labels.zone]: 'par',
      long: 'x'.repeat(64),
      'not a key': 'x',
      odd: 'not a value!',
      'karpenter.sh/nodepool': 'default',
      team: 'data',
    }
    stage.kube.put(cleverNodeClassKind, aNodeClass({ spec: { labels: own } }))
    await stage.launch(aClaim('one', { own: { [labels.zone]: 'par' } }))
    assert.deepEqual(stage.platform.group('one')?.spec.labels, { team: 'data' })
  })

  test('CLV-9 a label of the claim goes before that of the class', async () => {
    const stage = new Stage()
    stage.kube.put(cleverNodeClassKind, aNodeClass({ spec: { labels: { team: 'data', cost: 'x' } } }))
    await stage.launch(aClaim('one', { own: { team: 'web' } }))
    assert.deepEqual(stage.platform.group('one')?.spec.labels, { team: 'web', cost: 'x' })
  })
})

describe('a NodeGroup that is there already', () => {
  const ours = (claim: NodeClaim) => ({
    [ownNames.managed]: 'true',
    [ownNames.nodeClaim]: claim.metadata.name,
  })

  test('CLV-10 is adopted unchanged when the claim owns it, also with another flavor', async () => {
    const stage = new Stage()
    const claim = aClaim('one')
    put(stage, 'one', { labels: ours(claim), ownerReferences: [owner(claim, 'karpenter.sh/v1beta1')] })
    const before = stage.platform.group('one')
    const instance = await stage.launch(claim)
    assert.deepEqual(stage.platform.group('one'), before)
    // What is there is told, not what would have been chosen.
    assert.equal(instance.labels[platformLabels.flavor], 'M')
  })

  test('RPT-43 is adopted although the class is gone or not ready by now', async () => {
    const stage = new Stage()
    const claim = aClaim('one')
    put(stage, 'one', { labels: ours(claim), ownerReferences: [owner(claim)] })
    await stage.kube.delete(cleverNodeClassKind, { name: 'default' })
    assert.equal((await stage.launch(claim)).providerID, 'clevercloud://one')
  })

  const claim = aClaim('one')
  const foreign: readonly (readonly [string, Partial<NodeGroup['metadata']>])[] = [
    ['CLV-11 without the label', { ownerReferences: [owner(claim)] }],
    ['CLV-12 without the owner reference', { labels: ours(claim) }],
    [
      'CLV-12 with an owner of another API group',
      { labels: ours(claim), ownerReferences: [owner(claim, 'karpenter.sh.example.com/v1')] },
    ],
    [
      'CLV-12 of an earlier claim of that name',
      { labels: ours(claim), ownerReferences: [{ ...owner(claim), uid: 'earlier' }] },
    ],
    ['CLV-13 labelled for another claim', { labels: ours(aClaim('two')), ownerReferences: [owner(claim)] }],
  ]
  for (const [title, metadata] of foreign) {
    test(`${title} it is left alone, and the launch fails`, async () => {
      const stage = new Stage()
      put(stage, 'one', metadata)
      const before = stage.platform.group('one')
      const error = await rejected(stage, claim)
      assert.equal(error.kind, 'create')
      assert.match(error.message, /NodeGroup one exists and is not owned by NodeClaim one/)
      assert.deepEqual(stage.platform.group('one'), before)
    })
  }

  test('CLV-96 an error of the API server leaves it there; the next try adopts it', async () => {
    const stage = new Stage()
    stage.platform.answer = () => undefined
    let isBroken = true
    const client: KubeClient = {
      ...stage.platform.client(stage.kube),
      get: async (type, key) => {
        if (isBroken && stage.platform.groups().length > 0) throw new KubeError('server', 500, 'etcd is away')
        return await stage.kube.get(type, key)
      },
    }
    const provider = stage.newProvider(client)
    const stored = stage.kube.put(karpenterKinds.nodeClaim, claim)
    await assert.rejects(stage.settled(provider.create(stored)), /etcd is away/)
    assert.equal(stage.platform.groups().length, 1)
    isBroken = false
    assert.equal((await stage.settled(provider.create(stored))).providerID, 'clevercloud://one')
    assert.equal(stage.platform.groups().length, 1)
  })
})

describe('the decision of the platform', () => {
  test('CLV-91 the acknowledgement ends the launch, long before the node is there', async () => {
    const stage = new Stage()
    await stage.launch(aClaim('one'))
    assert.ok(stage.clock.monotonic() <= 2000, `${stage.clock.monotonic()} ms`)
    assert.equal(stage.value('acceptanceTimeouts'), 0)
  })

  for (const [title, status] of [
    ['CLV-14 by its phase', statuses.overQuota],
    ['CLV-15 by its condition', statuses.overQuotaBecause('limit of 40 vCPU')],
  ] as const) {
    test(`${title} a refusal for want of quota holds back the flavor and all that need as much`, async () => {
      const stage = new Stage()
      stage.platform.answer = () => status
      const claim = aClaim('one', { flavors: ['S', 'M'] })
      const error = await rejected(stage, claim)
      assert.equal(error.kind, 'insufficientCapacity')
      assert.deepEqual(
        error.offerings.map(({ instanceType, pauseMs, endsOnRelease }) => [
          instanceType,
          pauseMs,
          endsOnRelease,
        ]),
        [
          ['S', 60_000, true],
          ['M', 120_000, true],
          ['L', 120_000, true],
          ['XL', 120_000, true],
        ],
      )
      assert.equal(error.message.includes('limit of 40 vCPU'), title.includes('condition'))
      assert.equal(stage.value('quotaRejections'), 1)
      assert.deepEqual(stage.events(), ['NodeGroupQuotaExceeded one'])
      await stage.clock.advance(60_000)
      assert.deepEqual(stage.platform.groups(), [])
    })
  }

  test('a refusal for another reason holds back its flavor alone, whatever is released', async () => {
    const stage = new Stage()
    stage.platform.answer = () => statuses.refused('FlavorRetired', 'no longer sold')
    const error = await rejected(stage, aClaim('one'))
    assert.deepEqual(error.offerings, [
      { instanceType: '2XS', zone: 'par', capacityType: 'on-demand', pauseMs: 300_000 },
    ])
    assert.match(error.message, /FlavorRetired: no longer sold/)
    assert.equal(stage.value('rejections'), 1)
    assert.deepEqual(stage.events(), ['NodeGroupRejected one'])
  })

  test('CLV-92 CLV-95 a node that is there counts for more than an error beside it', async () => {
    for (const beside of [statuses.refused('UpstreamError'), statuses.overQuota]) {
      const stage = new Stage()
      const conditions = [
        ...('conditions' in beside ? (beside.conditions ?? []) : []),
        ...statuses.ready.conditions,
      ]
      stage.platform.answer = () => ({ ...beside, conditions })
      await stage.launch(aClaim('one'))
      assert.equal(stage.platform.groups().length, 1)
      assert.deepEqual(stage.events(), [])
    }
  })

  test('a failure that the platform tries again is told, and the launch goes on', async () => {
    const stage = new Stage()
    stage.platform.answer = () => statuses.refused('UpstreamError', 'no hypervisor')
    await stage.launch(aClaim('one'))
    assert.deepEqual(stage.events(), ['NodeGroupTransientFailure one'])
    assert.equal(stage.platform.groups().length, 1)
  })

  test('CLV-20 silence ends the launch after 15 s, and the node is waited for', async () => {
    const stage = new Stage()
    stage.platform.answer = () => undefined
    await stage.launch(aClaim('one'))
    assert.equal(stage.clock.monotonic(), 15_000)
    assert.equal(stage.value('acceptanceTimeouts'), 1)
    assert.deepEqual(stage.events(), ['NodeGroupAcceptanceTimeout one'])
  })

  test('CLV-21 a process that ends while it waits tells nothing', async () => {
    const stage = new Stage()
    stage.platform.answer = () => undefined
    const ending = new AbortController()
    const claim = stage.kube.put(karpenterKinds.nodeClaim, aClaim('one'))
    const work = stage.provider.create(claim, ending.signal)
    stage.clock.after(3000, () => {
      ending.abort(new Error('the process ends'))
    })
    await assert.rejects(stage.settled(work), /the process ends/)
    assert.equal(stage.value('acceptanceTimeouts'), 0)
    assert.deepEqual(stage.events(), [])
  })

  test('CLV-22 a group that disappears counts as a refusal for want of quota', async () => {
    const stage = new Stage()
    stage.platform.answer = () => undefined
    stage.clock.after(1500, () => void stage.platform.remove('one'))
    const error = await rejected(stage, aClaim('one', { flavors: ['XL'] }))
    assert.equal(error.kind, 'insufficientCapacity')
    assert.deepEqual(
      error.offerings.map(({ instanceType }) => instanceType),
      ['XL'],
    )
    assert.equal(stage.value('vanished'), 1)
    assert.deepEqual(stage.events(), ['NodeGroupVanished one'])
  })

  test('CLV-23 a group that is never seen is waited for like a silent one', async () => {
    const stage = new Stage()
    const client: KubeClient = {
      ...stage.platform.client(stage.kube),
      // Accepted, and not shown by any read.
      create: (_type, object) => Promise.resolve(object as never),
    }
    const provider = stage.newProvider(client)
    const claim = stage.kube.put(karpenterKinds.nodeClaim, aClaim('one'))
    await stage.settled(provider.create(claim))
    assert.equal(stage.value('acceptanceTimeouts'), 1)
    assert.equal(stage.value('vanished'), 0)
  })

  test('CLV-97 a refusal is told as one although the refused group cannot be deleted', async () => {
    const stage = new Stage()
    stage.platform.answer = () => statuses.overQuota
    const error = new KubeError('server', 500, 'no')
    stage.kube.failures.push({ verb: 'delete', plural: nodeGroupKind.plural, error })
    assert.equal((await rejected(stage, aClaim('one'))).kind, 'insufficientCapacity')
    assert.equal(stage.value('quotaRejections'), 1)
    assert.equal(stage.platform.groups().length, 1)
  })

  test('CLV-24 launches of a flavor that was refused lately take turns, each until it is answered', async () => {
    const stage = new Stage()
    let room = 2
    stage.platform.answer = () => (room-- > 0 ? statuses.accepted : statuses.overQuota)
    const claims = ['a', 'b', 'c', 'd', 'e'].map((name) =>
      stage.kube.put(karpenterKinds.nodeClaim, aClaim(name, { flavors: ['XL'] })),
    )
    room = 0
    await rejected(stage, aClaim('first', { flavors: ['XL'] }))
    room = 2
    await stage.clock.advance(60_000)
    const created: number[] = []
    stage.kube.cache(nodeGroupKind).onChange(({ kind }) => {
      if (kind === 'added') created.push(stage.clock.monotonic())
    })
    const works = claims.map((claim) => stage.provider.create(claim))
    const ends = await stage.settled(Promise.allSettled(works))
    assert.deepEqual(
      ends.map(({ status }) => status),
      ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'],
    )
    assert.equal(created.length, 3, 'those that still waited when one was refused asked for nothing')
    created.forEach((atMs, i) => {
      assert.ok(atMs - (created[i - 1] ?? 0) >= 1000)
    })
    assert.equal(stage.value('quotaRejections'), 2)
  })

  for (const [title, fields, kind] of [
    ['CLV-104 a flavor that is refused at admission', ['spec.flavor'], 'insufficientCapacity'],
    ['an admission error about more than the flavor', ['spec.flavor', 'spec.labels'], 'insufficientCapacity'],
  ] as const) {
    test(title, async () => {
      const stage = new Stage()
      const refusal = new KubeError('invalid', 422, 'spec.flavor: Unsupported value: "XL"', { fields })
      stage.kube.failures.push({ verb: 'create', plural: nodeGroupKind.plural, error: refusal })
      const error = await rejected(stage, aClaim('one', { flavors: ['XL'] }))
      assert.equal(error.kind, kind)
      assert.deepEqual(stage.platform.groups(), [])
      const isHeld = fields?.length === 1
      assert.deepEqual(stage.events(), isHeld ? ['NodeGroupRejected one'] : [])
      assert.deepEqual(
        error.offerings.map(({ pauseMs }) => pauseMs),
        isHeld ? [300_000] : [],
      )
    })
  }
})
