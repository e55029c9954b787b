/** Nearest misses of random clusters, held against decisions on clusters that are really changed. */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { controllerOf, type KubeObject, type Node, type NodePool, type Pod, type Taint } from '@tenon/api'
import type { PendingDecision } from '@tenon/operator'
import { SeededRandom } from '@tenon/runtime'
import { applyPatch, type Operation } from 'rfc6902'
import type { Snapshot } from '../snapshot/snapshot.ts'
import { Study } from '../study/study.ts'
import { Draw, randomCluster } from '../testing/clusters.test-support.ts'
import { MissFinder, type NearestMiss } from './find.ts'

/** More of them with TENON_MISS_CLUSTERS, for a run by hand. */
const clusters = Number(process.env['TENON_MISS_CLUSTERS'] ?? 40)
const limitMs = 60_000

const isPod = (object: KubeObject): object is Pod => object.kind === 'Pod'

async function decided(snapshot: Snapshot): Promise<PendingDecision> {
  const study = await Study.open(snapshot)
  const decision = await study.decide()
  await study.close()
  return decision
}

/** Where a pod goes, by its UID. */
function placeOf({ result }: PendingDecision, uid: string | undefined): string | undefined {
  const claim = result.claims.find(({ pods }) => pods.some(({ metadata }) => metadata.uid === uid))
  if (claim !== undefined) return `claim of ${claim.nodePool}, ${claim.instanceTypes[0] ?? ''}`
  return result.placements.find(({ pod }) => pod.metadata.uid === uid)?.node
}

function patched<T extends KubeObject>(object: T, operations: readonly Operation[]): T {
  const copy = structuredClone(object)
  assert.deepEqual(
    applyPatch(copy, [...operations]),
    operations.map(() => null),
  )
  return copy
}

/** The cluster with the change that a miss names, made as `kubectl patch` would make it. */
function changed(snapshot: Snapshot, pod: Pod, { change }: NearestMiss): Snapshot {
  const owner = controllerOf(pod)?.uid
  const { target } = change
  const objects = snapshot.objects.map((object) => {
    if (target.kind === 'pod') {
      const isOne = object.metadata.uid === pod.metadata.uid
      const isLike = isPod(object) && owner !== undefined && controllerOf(object)?.uid === owner
      return isOne || isLike ? patched(object, change.operations) : object
    }
    if (target.kind === 'podGroup' || object.kind !== 'NodePool' || object.metadata.name !== target.name)
      return object
    return change.kind === 'readyPool' ? ready(object as NodePool) : patched(object, change.operations)
  })
  return { ...snapshot, objects }
}

function ready(pool: NodePool): NodePool {
  const condition = {
    type: 'Ready',
    status: 'True' as const,
    reason: 'Ready',
    message: '',
    lastTransitionTime: '2026-11-26T11:00:00Z',
  }
  return { ...pool, status: { ...pool.status, conditions: [condition] } }
}

/** Applies the miss, and decides on the cluster that comes of it. */
async function holds(
  snapshot: Snapshot,
  before: PendingDecision,
  pod: Pod,
  miss: NearestMiss,
  seed: string,
): Promise<void> {
  const after = await decided(changed(snapshot, pod, miss))
  const { place, pricePerHour } = miss
  const about = `${seed}, pod ${pod.metadata.name}: ${miss.change.words}`
  const foretold = place.kind === 'node' ? place.name : `claim of ${place.nodePool}, ${place.instanceType}`
  assert.equal(placeOf(after, pod.metadata.uid), foretold, about)
  if (pricePerHour === undefined) return
  const difference = after.result.pricePerHour - before.result.pricePerHour
  assert.ok(Math.abs(difference - pricePerHour) < 1e-9, `${about}: ${difference} instead of ${pricePerHour}`)
}

test('EXP-3 every nearest miss of random clusters comes true when its patch is applied', async () => {
  let told = 0
  for (let seed = 0; seed < clusters; seed++) {
    const snapshot = randomCluster(new Draw(new SeededRandom(`misses ${seed}`)))
    const study = await Study.open(snapshot)
    const decision = await study.decide()
    const finder = new MissFinder(study, decision)
    for (const { pod } of decision.result.failures) {
      const { misses, untried } = await finder.find(pod, { limitMs })
      assert.equal(untried, 0)
      for (const miss of misses) await holds(snapshot, decision, pod, miss, `seed ${seed}`)
      told += misses.length
    }
    await study.close()
  }
  assert.ok(told > clusters, `${told} misses`)
})

/** An object as a person edits it. */
interface Editable {
  [field: string]: Editable
}

type Edit = (object: KubeObject) => KubeObject

/** Edits the objects that are meant; paths lead to what is set, or removed without a value. */
function at(
  isMeant: (object: KubeObject) => boolean,
  path: readonly (string | number)[],
  value?: unknown,
): Edit {
  return (object) => {
    if (!isMeant(object)) return object
    const copy = structuredClone(object)
    let part: Editable = copy as KubeObject & Editable
    for (const name of path.slice(0, -1)) {
      part[name] ??= {}
      part = part[name]
    }
    const last = path.at(-1) ?? ''
    if (Array.isArray(part) && value === undefined) part.splice(Number(last), 1)
    else if (value === undefined) delete part[last]
    else part[last] = value as Editable
    return copy
  }
}

/** What a person would try, written down without the code that is tested. */
function* edits(snapshot: Snapshot, pod: Pod): Generator<Edit, void, undefined> {
  const owner = controllerOf(pod)?.uid
  const isPodMeant = (object: KubeObject) =>
    isPod(object) &&
    (object.metadata.uid === pod.metadata.uid || (owner !== undefined && controllerOf(object)?.uid === owner))
  const { spec } = pod
  for (const key of Object.keys(spec.nodeSelector ?? {})) yield at(isPodMeant, ['spec', 'nodeSelector', key])
  for (const part of Object.keys(spec.affinity ?? {})) yield at(isPodMeant, ['spec', 'affinity', part])
  for (const index of (spec.topologySpreadConstraints ?? []).keys())
    yield at(isPodMeant, ['spec', 'topologySpreadConstraints', index, 'whenUnsatisfiable'], 'ScheduleAnyway')
  for (const [resource, little] of [
    ['cpu', '10m'],
    ['memory', '16Mi'],
  ] as const)
    yield at(isPodMeant, ['spec', 'containers', 0, 'resources', 'requests', resource], little)
  const tolerating = (taint: Taint) =>
    at(
      isPodMeant,
      ['spec', 'tolerations'],
      [...(spec.tolerations ?? []), { key: taint.key, operator: 'Exists', effect: taint.effect }],
    )
  const taintsOf = (object: KubeObject): readonly Taint[] =>
    object.kind === 'Node'
      ? ((object as Node).spec?.taints ?? [])
      : object.kind === 'NodePool'
        ? ((object as NodePool).spec.template.spec.taints ?? [])
        : []
  for (const taint of snapshot.objects.flatMap(taintsOf)) yield tolerating(taint)
  for (const pool of snapshot.objects.filter(({ kind }) => kind === 'NodePool') as NodePool[]) {
    const isMeant = (object: KubeObject) =>
      object.kind === 'NodePool' && object.metadata.name === pool.metadata.name
    yield at(isMeant, ['status', 'conditions'], ready(pool).status?.conditions)
    for (const resource of Object.keys(pool.spec.limits ?? {}))
      yield at(isMeant, ['spec', 'limits', resource], '100000')
    for (const index of pool.spec.template.spec.requirements.keys())
      yield at(isMeant, ['spec', 'template', 'spec', 'requirements', index])
    for (const [key, value] of Object.entries(spec.nodeSelector ?? {}))
      yield at(isMeant, ['spec', 'template', 'metadata', 'labels', key], value)
  }
}

async function canBeHelped(snapshot: Snapshot, pod: Pod): Promise<boolean> {
  for (const edit of edits(snapshot, pod)) {
    const after = await decided({ ...snapshot, objects: snapshot.objects.map(edit) })
    if (placeOf(after, pod.metadata.uid) !== undefined) return true
  }
  return false
}

test('EXP-3 of the pods that one change can help, one is told for at least 95 of 100', async () => {
  let [helped, told] = [0, 0]
  for (let seed = 0; seed < clusters; seed++) {
    const snapshot = randomCluster(new Draw(new SeededRandom(`helped ${seed}`)))
    const study = await Study.open(snapshot)
    const decision = await study.decide()
    for (const { pod } of decision.result.failures.slice(0, 2)) {
      if (!(await canBeHelped(snapshot, pod))) continue
      helped++
      const { misses } = await new MissFinder(study, decision).find(pod, { limitMs })
      if (misses.length > 0) told++
    }
    await study.close()
  }
  assert.ok(helped > clusters / 4, `${helped} pods`)
  assert.ok(told >= 0.95 * helped, `${told} of ${helped}`)
})
