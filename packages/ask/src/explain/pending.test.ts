import assert from 'node:assert/strict'
import { test } from 'node:test'
import { labels, type Pod } from '@tenon/api'
import { patchCommand, patchOf } from '../misses/patch.ts'
import { redacted } from '../snapshot/redact.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study, type StudyFacts } from '../study/study.ts'
import { SystemClock } from '@tenon/runtime'
import { aNode, aPending, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { explainPending, PendingExplainer, type PendingExplanation } from './pending.ts'

async function explained(snapshot: Snapshot, name: string): Promise<PendingExplanation> {
  const study = await Study.open(snapshot)
  const pod = study.operator.caches.pods.get({ namespace: 'default', name })
  assert.ok(pod)
  const answer = await explainPending(study, await study.decide(), pod)
  await study.close()
  assert.ok(answer)
  return answer
}

const taint = { key: 'dedicated', value: 'batch', effect: 'NoSchedule' } as const
const types = [aType('small', 2), aType('large', 8)]

test('EXP-1 a pod that one NodePool refuses by taint and another by size: both are named, and what would help', async () => {
  const web: Pod = aPending('web-1', { cpu: '6', memory: '1Gi' }, {}, 'web')
  const snapshot = aSnapshot(
    [
      aPool('batch', { weight: 10 }, { taints: [taint] }),
      aPool('small', {}, { requirements: [{ key: labels.instanceType, operator: 'In', values: ['small'] }] }),
      aNode('node-1', '1'),
      web,
    ],
    types,
  )
  const { summary, nodePools, nodes, misses } = await explained(snapshot, 'web-1')
  assert.equal(summary, 'No NodePool can launch a node for it')
  assert.deepEqual(
    nodePools.map(({ nodePool, code }) => [nodePool, code]),
    [
      ['batch', 'untoleratedTaints'],
      ['small', 'noInstanceType'],
    ],
  )
  assert.match(
    nodePools[0]?.message ?? '',
    /does not tolerate dedicated=batch:NoSchedule; add to its spec\.tolerations/,
  )
  assert.match(nodePools[1]?.message ?? '', /no instance type has enough resources .*requests: cpu=6/)
  assert.equal(nodes?.message, '0/1 nodes are available: 1 Insufficient cpu.')
  const told = misses.map(({ change, place, pricePerHour }) => [change.words, place, pricePerHour])
  assert.deepEqual(told.slice(0, 3), [
    ['request 2 of cpu instead of 6', { kind: 'claim', nodePool: 'small', instanceType: 'small' }, 0.1],
    [
      'allow large for node.kubernetes.io/instance-type in NodePool small',
      { kind: 'claim', nodePool: 'small', instanceType: 'large' },
      0.4,
    ],
    ['tolerate dedicated=batch:NoSchedule', { kind: 'claim', nodePool: 'batch', instanceType: 'large' }, 0.4],
  ])
  const toleration = misses.find(({ change }) => change.kind === 'addToleration')
  assert.ok(toleration)
  const patch = patchOf(toleration.change, web)
  assert.ok(patch)
  assert.equal(
    patchCommand(patch),
    `kubectl patch replicaset/web-7d9f -n default --type=json -p '[{"op":"add","path":"/spec/template/spec/tolerations","value":[{"key":"dedicated","operator":"Equal","value":"batch","effect":"NoSchedule"}]}]'`,
  )
})

test('EXP-2 the largest request that fits beside the rest of the node is a quantity a person would write', async () => {
  const snapshot = aSnapshot([aPool('default'), aPending('db', { cpu: '1', memory: '50Gi' })], types)
  const { misses } = await explained(snapshot, 'db')
  assert.deepEqual(
    misses.map(({ change }) => change.words),
    ['request 32Gi of memory instead of 50Gi'],
  )
})

test('EXP-2 a limit is raised to what is enough, and a NodePool that is not ready is one to be made ready', async () => {
  const unready = {
    ...aPool('waiting'),
    status: {
      conditions: [
        {
          type: 'Ready',
          status: 'False' as const,
          reason: 'NodeClassNotReady',
          message: 'NodeClass missing',
          lastTransitionTime: '2026-11-26T11:00:00Z',
        },
      ],
    },
  }
  const snapshot = aSnapshot(
    [aPool('full', { limits: { cpu: '1' } }), unready, aPending('api', { cpu: '1500m', memory: '1Gi' })],
    types,
  )
  const { nodePools, misses } = await explained(snapshot, 'api')
  assert.deepEqual(
    nodePools.map(({ nodePool, code }) => [nodePool, code]),
    [
      ['full', 'limits'],
      ['waiting', 'notReady'],
    ],
  )
  const words = misses.map(({ change }) => change.words)
  assert.ok(words.includes('raise the limit of cpu of NodePool full to 2'), words.join('; '))
  assert.ok(words.includes('make NodePool waiting ready (NodeClass missing)'), words.join('; '))
})

test('a pod for which a node is launched anyway is told so, and nothing else is tried', async () => {
  const snapshot = aSnapshot([aPool('default'), aPending('api', { cpu: '1', memory: '1Gi' })], types)
  const { case: what, summary, misses } = await explained(snapshot, 'api')
  assert.deepEqual([what, misses], ['newNode', []])
  assert.equal(summary, 'The next decision launches a node of NodePool default for it (small)')
})

test('a pause of launches is part of a snapshot, also of a redacted one, and its reason is not told', async () => {
  const paused = '{"reason":"Bob is away","includes":["launches"]}'
  const brake = {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'tenon-brake', namespace: 'tenon' },
    data: { paused },
  }
  const objects = [aPool('default'), aPending('api', { cpu: '1', memory: '1Gi' }), brake]
  const plain = aSnapshot(objects, types)
  const held = { ...plain, settings: { ...plain.settings, brakeNamespace: 'tenon' } }
  const hidden = redacted(held, 'key')
  assert.ok(!JSON.stringify(hidden).includes('Bob'))
  for (const snapshot of [held, hidden]) {
    const study = await Study.open(snapshot)
    const { result } = await study.decide()
    assert.deepEqual(result.claims, [])
    assert.deepEqual(
      study.operator
        .questions()
        .unreadyPools()
        .map(({ code }) => code),
      ['paused'],
    )
    await study.close()
  }
  const released = await Study.open({
    ...held,
    objects: plain.objects.filter(({ kind }) => kind !== 'ConfigMap'),
  })
  assert.equal((await released.decide()).result.claims.length, 1)
  await released.close()
})

/** Every look at it takes a second. */
class SlowClock extends SystemClock {
  #nowMs = 0

  override monotonic(): number {
    this.#nowMs += 1000
    return this.#nowMs
  }
}

test('EXP-3 one time limit holds for all pods of an answer, and what was not tried is counted', async (t) => {
  const pods = ['a', 'b'].map((name) => aPending(name, { cpu: '6', memory: '1Gi' }, {}, name))
  const pools = ['red', 'green'].map((name) => aPool(name, {}, { taints: [taint] }))
  const study = await Study.open(aSnapshot([...pools, ...pods], types))
  t.after(() => study.close())
  const decision = await study.decide()
  const missesOf = async (missesMs: number) => {
    const { operator, snapshot } = study
    const facts: StudyFacts = { operator, snapshot, clock: new SlowClock() }
    const explainer = new PendingExplainer(facts, decision)
    const counts: (readonly [found: number, untried: number])[] = []
    for (const pod of pods) {
      const { misses, untried } = (await explainer.explain(pod, { missesMs })) ?? assert.fail()
      counts.push([misses.length, untried])
    }
    return counts
  }
  const all = await missesOf(1_000_000)
  assert.ok(all.every(([found, untried]) => found > 0 && untried === 0))
  const tried = async (missesMs: number) =>
    (await missesOf(missesMs)).map(([found, untried]) => ({ found, isWhole: untried === 0 }))
  assert.deepEqual(await tried(1), [
    { found: 0, isWhole: false },
    { found: 0, isWhole: false },
  ])
  // Enough for the first pod, so that nothing is left for the second.
  let enough = 1000
  while ((await tried(enough))[0]?.isWhole !== true) enough += 1000
  const [first, second] = await tried(enough)
  assert.deepEqual([first?.found, second?.isWhole], [all[0]?.[0], false])
})

test('EXP-3 a change that pods of another revision have no place for is made on the others', async () => {
  const selecting = aPending('web-1', { cpu: '1' }, { nodeSelector: { tier: 'none' } }, 'web')
  const plain = aPending('web-2', { cpu: '9' }, {}, 'web')
  const { misses } = await explained(aSnapshot([aPool('blue'), selecting, plain], types), 'web-1')
  const dropped = misses.find(({ change }) => change.kind === 'dropNodeSelector')
  assert.deepEqual([dropped?.running, dropped?.waiting], [1, 2])
})

test('VER-24 a snapshot keeps the kubelet version of new nodes, which decides about declared features', async () => {
  const container = {
    name: 'app',
    resources: { requests: { cpu: '1' } },
    restartPolicyRules: [{ action: 'RestartAllContainers' }],
  }
  const pod = aPending('web-1', { cpu: '1', memory: '1Gi' }, { containers: [container] }, 'web')
  const snapshot = aSnapshot([aPool('default'), pod], types)
  const caseWith = async (kubeletVersion: string) => {
    const catalogues = snapshot.catalogues.map((each) => ({ ...each, kubeletVersion }))
    return (await explained({ ...snapshot, catalogues }, 'web-1')).case
  }
  assert.deepEqual([await caseWith('v1.35.4'), await caseWith('v1.36.0')], ['waits', 'newNode'])
})
