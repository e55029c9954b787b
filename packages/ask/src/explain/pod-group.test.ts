/** Why groups of pods wait, all together (ask.md 2, gangs.md 7.7). */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import type { KubeObject, Pod } from '@tenon/api'
import { redacted } from '../snapshot/redact.ts'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { aNode, aPending, aPodGroup, aPool, aSnapshot, aType } from '../testing/clusters.test-support.ts'
import { PodExplainer } from './pod.ts'
import { PodGroupExplainer, type PodGroupExplanation } from './pod-group.ts'
import { podGroupText } from './text.ts'

const ofKubernetes = 'scheduling.k8s.io'
const options = { missesMs: 60_000 }
const small = aType('small', 4)

function members(count: number, spec: Partial<Pod['spec']> = {}, group = 'train'): readonly Pod[] {
  return Array.from({ length: count }, (_, at) =>
    aPending(`${group}-${at}`, { cpu: '3' }, { schedulingGroup: { podGroupName: group }, ...spec }),
  )
}

/** The scheduler says nothing of the pod. */
function unseen(pod: Pod): Pod {
  return { ...pod, status: { phase: 'Pending' } }
}

async function studyOf(t: TestContext, snapshot: Snapshot): Promise<Study> {
  const study = await Study.open(snapshot)
  t.after(() => study.close())
  return study
}

async function explained(
  t: TestContext,
  objects: readonly KubeObject[],
  api = ofKubernetes,
): Promise<PodGroupExplanation> {
  const study = await studyOf(t, aSnapshot(objects, [small]))
  const found = await new PodGroupExplainer(study).explain(api, 'default', 'train', options)
  assert.ok(found !== undefined)
  return found
}

const wordsOf = ({ pending }: PodGroupExplanation): readonly string[] =>
  (pending?.misses ?? []).map(({ change }) => change.words)

test('GNG-6 a group for which limits leave too little room says how far it comes, which pod comes next, and what would help', async (t) => {
  const found = await explained(t, [
    aPool('web', { limits: { nodes: '2' } }),
    aPodGroup('train', 3),
    ...members(3),
  ])
  assert.deepEqual([found.case, found.code, found.minCount], ['waits', 'podGroup', 3])
  assert.match(
    found.summary,
    /^It runs with at least 3 pods, and there is room for 2; for the next one: NodePool web/,
  )
  assert.equal(found.member, 'default/train-2')
  assert.deepEqual(found.pods, { bound: 0, planned: 0, waiting: 3, gated: 0 })
  assert.match(found.pending?.nodePools[0]?.message ?? '', /its limit on the number of nodes is used up/)
  const raised = found.pending?.misses.find(({ change }) => change.kind === 'raiseLimit')
  assert.equal(raised?.change.words, 'raise the limit of nodes of NodePool web to 3')
  assert.deepEqual([raised?.running, raised?.waiting], [3, 3])
  const fewer = found.pending?.misses.find(({ change }) => change.kind === 'lowerMinCount')
  assert.equal(fewer?.change.words, 'let train run with 2 pods instead of 3, which takes a new PodGroup')
  assert.equal(fewer?.running, 2)
  // Two of 2 CPU share a node.
  assert.ok(
    wordsOf(found).some((words) => words.startsWith('request 2 of cpu')),
    wordsOf(found).join(),
  )
  const text = podGroupText(found).join('\n')
  assert.match(text, /^podgroup\/train in default: /)
  assert.match(text, /At least 3 pods run together: 0 with a node, 0 planned, 3 waiting/)
  assert.match(text, /It would run after one of these changes/)
})

test('GNG-6 a pod of a group says what its group says, and changes count for the whole group', async (t) => {
  const pods = members(3)
  const objects = [aPool('web', { limits: { nodes: '2' } }), aPodGroup('train', 3), ...pods]
  const study = await studyOf(t, aSnapshot(objects, [small]))
  const [first] = pods
  assert.ok(first !== undefined)
  const { pending, summary } = await new PodExplainer(study).explain(first, options)
  assert.match(summary, /It waits: podgroups\.scheduling\.k8s\.io\/default\/train runs with at least 3 pods/)
  const raised = pending?.misses.find(({ change }) => change.kind === 'raiseLimit')
  assert.deepEqual([raised?.running, raised?.waiting], [3, 3])
})

test('GNG-28 a group with a label that nothing sets would run without it, or with it on the nodes of a NodePool', async (t) => {
  const schedulingConstraints = { topology: [{ key: 'rack' }] }
  const found = await explained(t, [
    aPool('web'),
    aPodGroup('train', 2, { schedulingConstraints }),
    ...members(2),
  ])
  assert.equal(found.topologyKey, 'rack')
  assert.match(found.summary, /must share a value of the node label rack, which no node has/)
  assert.ok(
    wordsOf(found).includes(
      'let the pods of train run in several domains of rack, which takes a new PodGroup',
    ),
  )
})

test('GNG-1 a group with too few pods says how many it has, and so do its pods; gates are told', async (t) => {
  const [one, two] = members(2).map(unseen)
  const [, gated] = members(2, { schedulingGates: [{ name: 'example.com/wait' }] })
  assert.ok(one !== undefined && two !== undefined && gated !== undefined)
  const objects = [aPool('web'), aPodGroup('train', 3), one, gated]
  const found = await explained(t, objects)
  assert.deepEqual([found.case, found.code], ['short', 'podGroupShort'])
  assert.match(found.summary, /runs with at least 3 pods and has 1 .*it waits for the others/)
  assert.deepEqual(found.pods, { bound: 0, planned: 0, waiting: 2, gated: 1 })
  const study = await studyOf(t, aSnapshot(objects, [small]))
  const pod = await new PodExplainer(study).explain(one, options)
  assert.match(pod.summary, /^It waits: .*has 1 /)
  const behind = await new PodExplainer(study).explain(gated, options)
  assert.match(behind.summary, /scheduling gates are removed/)
})

test('GNG-2 pods of a group that does not exist say so', async (t) => {
  const [pod] = members(1).map(unseen)
  assert.ok(pod !== undefined)
  const study = await studyOf(t, aSnapshot([aPool('web'), aPodGroup('other', 2), pod], [small]))
  const { summary } = await new PodExplainer(study).explain(pod, options)
  assert.match(summary, /its podgroups\.scheduling\.k8s\.io\/default\/train does not exist/)
  assert.equal(
    await new PodGroupExplainer(study).explain(ofKubernetes, 'default', 'train', options),
    undefined,
  )
})

test('GNG-35 where groups are not read their pods are like others', async (t) => {
  const [pod] = members(1)
  assert.ok(pod !== undefined)
  const study = await studyOf(t, aSnapshot([aPool('web'), pod], [small]))
  const { summary } = await new PodExplainer(study).explain(pod, options)
  assert.match(summary, /The next decision launches a node of NodePool web/)
})

test('a group that has a place, and one that runs', async (t) => {
  const next = await explained(t, [aPool('web'), aPodGroup('train', 2), ...members(2)])
  assert.deepEqual([next.case, next.summary], ['launches', 'The next decision launches 2 nodes for it'])
  const bound = members(2, { nodeName: 'there' })
  const there = aNode('there', '8')
  const runs = await explained(t, [aPool('web'), aPodGroup('train', 2), there, ...bound])
  assert.deepEqual([runs.case, runs.summary], ['runs', '2 of its pods have a node'])
  const [, , third] = members(3)
  assert.ok(third !== undefined)
  const pool = aPool('web', { limits: { nodes: '0' } })
  const more = await explained(t, [pool, aPodGroup('train', 2), there, ...bound, third])
  assert.deepEqual([more.case, more.member], ['waits', 'default/train-2'])
  assert.equal(more.pods.bound, 2)
})

test('GNG-38 a group of coscheduling is found by the name of its API, and one of Volcano by its annotation', async (t) => {
  const groupOf = (api: string): KubeObject => {
    const metadata = { name: 'train', namespace: 'default', uid: `group-${api}` }
    const group = { apiVersion: api, kind: 'PodGroup', metadata, spec: { minMember: 3 } }
    return group
  }
  const [pod] = members(1)
  assert.ok(pod !== undefined)
  const { schedulingGroup: _, ...spec } = pod.spec
  const labelled = {
    ...pod,
    spec,
    metadata: { ...pod.metadata, labels: { 'scheduling.x-k8s.io/pod-group': 'train' } },
  }
  const cosched = await explained(
    t,
    [aPool('web'), groupOf('scheduling.x-k8s.io/v1alpha1'), labelled],
    'scheduling.x-k8s.io',
  )
  assert.match(cosched.summary, /^It runs with at least 3 pods and has 1/)
  const annotations = { 'scheduling.k8s.io/group-name': 'train' }
  const annotated = { ...pod, spec, metadata: { ...pod.metadata, annotations } }
  const objects = [aPool('web'), groupOf('scheduling.volcano.sh/v1beta1'), annotated]
  assert.equal((await explained(t, objects, 'scheduling.volcano.sh')).code, 'podGroupShort')
  // Names are others in a snapshot that is redacted, and belong together as before.
  const study = await studyOf(t, redacted(aSnapshot(objects, [small]), 'key'))
  const [first] = new PodGroupExplainer(study).all()
  assert.ok(first !== undefined && first[2] !== 'train')
  const found = await new PodGroupExplainer(study).explain(...first, options)
  assert.deepEqual(found?.pods.waiting, 1)
})

test('GNG-11 a group whose launches were released says when it is tried next', async (t) => {
  const snapshot = aSnapshot([aPool('web'), aPodGroup('train', 2), ...members(2)], [small])
  const notBeforeMs = snapshot.takenAtMs + 60_000
  const study = await studyOf(t, {
    ...snapshot,
    memory: { ...snapshot.memory, groupRounds: { 'group-train': { releases: 4, notBeforeMs } } },
  })
  const found = await new PodGroupExplainer(study).explain(ofKubernetes, 'default', 'train', options)
  assert.match(
    found?.summary ?? '',
    /were released 4 times as not all could be had; next try at 2026-11-26T12:01:00Z/,
  )
})
