/**
 * A minimal first fit: pods from the largest to the smallest, each onto the first node that can still be of
 * some type, or onto a new one. Only for cases without constraints between pods.
 */
import { type KubeObject, type PodSpec, type Taint, type Toleration, tolerates } from '@tenon/api'
import type { Case } from '../case.ts'
import { type Amounts, fits, less, plus, requestsOf, type Row, rowsOf } from '../rows.ts'
import { wantedValues } from './fresh-nodes.ts'

interface PlainPod {
  readonly requests: Amounts
  readonly spec: PodSpec
}

/** @returns undefined if the case has constraints that this ignores, or a price is unknown. */
export function firstFitPrice(given: Case): number | undefined {
  if (!isPlain(given)) return undefined
  const rows = rowsOf(given, wantedValues(given.objects)).filter(({ taints }) =>
    taints.every(({ effect }) => effect !== 'PreferNoSchedule'),
  )
  const daemons = podsOf(given.objects, ['DaemonSet'])
  const roomy = rows.map((row) => ({ row, left: less(row.allocatable, daemonsOn(row, daemons)) }))
  const weights = [...new Set(rows.map(({ pool }) => pool.spec.weight ?? 0))].toSorted((a, b) => b - a)
  const nodes: { rows: typeof roomy; used: Amounts }[] = []
  const pods = podsOf(given.objects, ['Deployment', 'StatefulSet', 'Pod', 'Job']).toSorted(
    (a, b) => amount(b, 'cpu') - amount(a, 'cpu') || amount(b, 'memory') - amount(a, 'memory'),
  )
  for (const pod of pods) {
    const fitting = (candidates: typeof roomy, used: Amounts): typeof roomy =>
      candidates.filter(({ row, left }) => isAllowed(pod.spec, row) && fits(plus(used, pod.requests), left))
    const node = nodes.find((each) => fitting(each.rows, each.used).length > 0)
    if (node !== undefined) {
      node.rows = fitting(node.rows, node.used)
      node.used = plus(node.used, pod.requests)
      continue
    }
    const opened = weights
      .map((weight) => roomy.filter(({ row }) => (row.pool.spec.weight ?? 0) === weight))
      .map((own) => fitting(own, {}))
      .find((own) => own.length > 0)
    if (opened === undefined) return undefined
    const [first] = opened
    nodes.push({ rows: opened.filter(({ row }) => row.pool === first?.row.pool), used: pod.requests })
  }
  let sum = 0
  for (const { rows: left } of nodes) {
    const known = left.flatMap(({ row }) => row.pricePerHour ?? [])
    if (known.length === 0) return undefined
    sum += Math.min(...known)
  }
  return sum
}

/** Fields of a pod spec that this first fit supports. */
const known: ReadonlySet<string> = new Set([
  'containers',
  'nodeSelector',
  'tolerations',
  'restartPolicy',
  'terminationGracePeriodSeconds',
  'priorityClassName',
])

function isPlain({ objects, surroundings, steps, settings }: Case): boolean {
  const { memoryPercent, soldOut, quota, refusedApps, answers } = surroundings
  const isCalm = [memoryPercent, soldOut, quota, refusedApps, answers].every((each) => each === undefined)
  if (!isCalm || steps.length > 0 || Object.keys(settings).length > 0) return false
  return objects.every((object) => {
    if (object.kind === 'NodePool') {
      const { limits, template } = (object as Row['pool']).spec
      const isOpen = (template.spec.requirements ?? []).every(({ minValues }) => minValues === undefined)
      return limits === undefined && isOpen
    }
    const spec = podSpecOf(object)
    if (spec === undefined) return true
    const isKnown = Object.keys(spec).every((field) => known.has(field))
    return isKnown && spec.containers.every(({ ports = [] }) => ports.length === 0)
  })
}

function podSpecOf(object: KubeObject): PodSpec | undefined {
  const { spec } = object as KubeObject & {
    readonly spec?: PodSpec & { readonly template?: { readonly spec: PodSpec } }
  }
  if (object.kind === 'Pod') return spec
  return object.kind === 'NodePool' ? undefined : spec?.template?.spec
}

function podsOf(objects: readonly KubeObject[], kinds: readonly string[]): readonly PlainPod[] {
  return objects
    .filter(({ kind }) => kinds.includes(kind))
    .flatMap((object) => {
      const spec = podSpecOf(object)
      if (spec === undefined) return []
      const { replicas, parallelism } = (
        object as KubeObject & {
          readonly spec: { readonly replicas?: number; readonly parallelism?: number }
        }
      ).spec
      const count = object.kind === 'Pod' || object.kind === 'DaemonSet' ? 1 : (replicas ?? parallelism ?? 1)
      return Array.from({ length: count }, () => ({ requests: requestsOf(spec), spec }))
    })
}

const amount = ({ requests }: PlainPod, name: 'cpu' | 'memory'): number => requests[name] ?? 0

function isAllowed({ nodeSelector = {}, tolerations = [] }: PodSpec, { labels, taints }: Row): boolean {
  const own = new Map(Object.entries(labels))
  const isSelected = Object.entries(nodeSelector).every(([key, value]) => own.get(key) === value)
  return isSelected && taints.every((taint) => isTolerated(tolerations, taint))
}

const isTolerated = (tolerations: readonly Toleration[], taint: Taint): boolean =>
  taint.effect === 'PreferNoSchedule' || tolerations.some((each) => tolerates(each, taint))

function daemonsOn(row: Row, daemons: readonly PlainPod[]): Amounts {
  return daemons
    .filter(({ spec }) => isAllowed(spec, row))
    .reduce<Amounts>((sum, { requests }) => plus(sum, requests), {})
}
