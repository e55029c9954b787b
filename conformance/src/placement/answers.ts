/** Gets the answers of kube-scheduler and of the embedded scheduler to the same cases. */
import { kinds, type Pod, type UnstructuredObject } from '@tenon/api'
import { ApiError, type LocalApi } from '@tenon/devcluster'
import { schedulingVerdicts } from '@tenon/devcluster/scheduling-verdicts'
import { createTestApiServer } from '@tenon/devcluster/test-api'
import { isKubeError, KubeError } from '@tenon/kube'
import { type Clock, SeededRandom, VirtualClock } from '@tenon/runtime'
import { inParallel } from '../parallel.ts'
import type { BareScheduler } from './bare-scheduler.ts'
import { csiDrivers } from './features.ts'
import { type CaseObject, type PlacementCase, runtimeClasses } from './cases.ts'

/** Where each pod of a case could be placed, and which objects were rejected. */
export interface Answer {
  /** Names of nodes by name of the pod. */
  readonly nodes: Readonly<Record<string, readonly string[]>>
  /** Objects that the API server rejected, with its messages. */
  readonly refused: Readonly<Record<string, string>>
  /** The scheduler's messages about each pod that fits nowhere, or about the nodes that do not fit. */
  readonly reasons: Readonly<Record<string, unknown>>
}

const pollMs = 100
const verdictMs = 60_000
/** Time for the scheduler's watches to catch up: they are not synchronized. */
const hearsayMs = 500

const labelOf = ({ kind, metadata: { name, namespace = '' } }: UnstructuredObject): string =>
  `${kind} ${namespace === '' ? name : `${namespace}/${name}`}`

const keyOf = ({ metadata: { name, namespace } }: UnstructuredObject) => ({
  name,
  ...(namespace !== undefined && { namespace }),
})

/** Creates what all cases share. */
export async function prepare({ client }: BareScheduler): Promise<void> {
  for (const { type, object } of [...runtimeClasses, ...csiDrivers]) await client.create(type, object)
}

/** Asks kube-scheduler about many cases at once, and deletes their nodes and pods. */
export async function askKubernetes(
  scheduler: BareScheduler,
  clock: Clock,
  cases: readonly PlacementCase[],
): Promise<Answer[]> {
  const { client, feasible } = scheduler
  const refusals = cases.map((): Record<string, string> => ({}))
  const uids = cases.map((): Record<string, string> => ({}))
  const create = async ({ type, object, status }: CaseObject, index: number): Promise<void> => {
    try {
      const { metadata } = await client.create(type, object)
      if (object.kind === 'Pod') (uids[index] ?? {})[object.metadata.name] = metadata.uid ?? ''
      if (status) await client.patch(type, keyOf(object), { status }, { subresource: 'status' })
    } catch (error) {
      if (!(error instanceof KubeError) || error.status === 0) throw error
      ;(refusals[index] ?? {})[labelOf(object)] = error.message
    }
  }
  const objects = cases.flatMap((one, index) => one.objects.map((object) => ({ object, index })))
  const isNamespace = ({ object: { type } }: (typeof objects)[number]): boolean => type === kinds.namespace
  await inParallel(objects.filter(isNamespace), ({ object, index }) => create(object, index))
  await inParallel(
    objects.filter((each) => !isNamespace(each)),
    ({ object, index }) => create(object, index),
  )
  const known = objects.filter(({ object, index }) => refusals[index]?.[labelOf(object.object)] === undefined)
  await inParallel(
    known.filter(({ object }) => object.isDeleted === true),
    ({ object: { type, object } }) => client.delete(type, keyOf(object)),
  )
  await clock.sleep(hearsayMs)
  const probes = cases.flatMap(({ probes: all }, index) => all.map((object) => ({ object, index })))
  await inParallel(probes, ({ object, index }) => create({ type: kinds.pod, object }, index))
  const wanted = new Set(probes.flatMap(({ object, index }) => uids[index]?.[object.metadata.name] ?? []))
  const judged = await verdicts(scheduler, clock, wanted)
  const answers = cases.map((one, index): Answer => {
    const own = new Set(one.objects.map(({ object }) => object.metadata.name))
    const asked = one.probes.flatMap(({ metadata: { name } }) => {
      const uid = uids[index]?.[name]
      return uid === undefined ? [] : [{ name, uid }]
    })
    return {
      nodes: Object.fromEntries(
        asked.map(({ name, uid }) => [
          name,
          (feasible.get(uid) ?? []).filter((node) => own.has(node)).toSorted(),
        ]),
      ),
      refused: refusals[index] ?? {},
      reasons: Object.fromEntries(asked.map(({ name, uid }) => [name, judged.get(uid) ?? ''])),
    }
  })
  const rest = [
    ...objects.filter(({ object: { type } }) => type === kinds.node).map(({ object }) => object),
    ...probes.map(({ object }) => ({ type: kinds.pod, object })),
  ]
  await inParallel(rest, async ({ type, object }) => {
    await client.delete(type, keyOf(object), { gracePeriodSeconds: 0 }).catch((error: unknown) => {
      if (!isKubeError(error, 'notFound')) throw error
    })
  })
  return answers
}

/** Waits until the scheduler has decided about each pod, by UID. */
async function verdicts(
  { client }: BareScheduler,
  clock: Clock,
  wanted: ReadonlySet<string>,
): Promise<Map<string, string>> {
  const deadline = clock.monotonic() + verdictMs
  for (;;) {
    const judged = new Map<string, string>()
    for (const { metadata, status } of await client.list(kinds.pod)) {
      const uid = metadata.uid ?? ''
      const condition = status?.conditions?.find(({ type }) => type === 'PodScheduled')
      if (wanted.has(uid) && condition?.status === 'False') judged.set(uid, condition.message ?? '')
    }
    if (judged.size === wanted.size) return judged
    if (clock.monotonic() > deadline) {
      throw new Error(`kube-scheduler judged ${judged.size} of ${wanted.size} pods in ${verdictMs / 1000} s`)
    }
    await clock.sleep(pollMs)
  }
}

/** Asks the embedded scheduler of a minor version about a case, with a new embedded API server. */
export function askEmbedded(one: PlacementCase, minor: number): Answer {
  const clock = new VirtualClock()
  const random = new SeededRandom(7)
  const api = createTestApiServer({ clock, random }).local
  const refused: Record<string, string> = {}
  const accepted = (each: CaseObject): boolean => {
    try {
      createIn(api, each)
      return true
    } catch (error) {
      if (!(error instanceof ApiError)) throw error
      refused[labelOf(each.object)] = error.message
      return false
    }
  }
  for (const each of [...runtimeClasses, ...csiDrivers]) createIn(api, each)
  for (const { type, object } of one.objects.filter(accepted).filter(({ isDeleted }) => isDeleted === true)) {
    api.delete(type, object.metadata.namespace, object.metadata.name, { gracePeriodSeconds: 30 })
  }
  const asked = one.probes.filter((object) => accepted({ type: kinds.pod, object }))
  const pods = asked.flatMap(({ metadata }) => {
    const pod = api.get<Pod>(kinds.pod, metadata.namespace, metadata.name)
    return pod === undefined ? [] : [pod]
  })
  const judged = schedulingVerdicts(api, random, pods, minor)
  return {
    nodes: Object.fromEntries(
      asked.map(({ metadata }, index) => [metadata.name, judged[index]?.nodes ?? []]),
    ),
    refused,
    reasons: Object.fromEntries(asked.map(({ metadata }, index) => [metadata.name, judged[index]?.refusals])),
  }
}

function createIn(api: LocalApi, { type, object, status }: CaseObject): void {
  const { namespace, name } = object.metadata
  api.create(type, object)
  if (status) api.patch(type, namespace, name, { status }, 'status')
  if (type !== kinds.node) return
  // The API server adds the not-ready taint to new nodes; nobody else would remove it here.
  const { taints = null } = (object['spec'] ?? {}) as { readonly taints?: unknown }
  api.patch(type, namespace, name, { spec: { taints } })
}
