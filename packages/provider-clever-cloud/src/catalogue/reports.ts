/** Which node reports about a flavor's size are accepted (clever-cloud.md 20, 13th fact). */
import { formatResource, ownValue, type Resources, setOwn } from '@tenon/api'

/** Capacity and allocatable of a node. */
export interface NodeSize {
  readonly capacity: Resources
  readonly allocatable: Resources
}

/** The size that a node reports for its flavor. */
export interface NodeReport extends NodeSize {
  readonly nodeName: string
  /** From its label. */
  readonly flavor: string
  /** The NodeGroup in its label, if Tenon created it. */
  readonly nodeGroup: { readonly name: string; readonly flavor: string } | undefined
  /** From its label. */
  readonly role: string
}

export type ReportVerdict =
  /** The report counts, and may change the size of the flavor. */
  | { readonly kind: 'accepted' }
  /** Not a report: the node is not a worker of Tenon, or its kubelet has not reported yet. */
  | { readonly kind: 'ignored' }
  /** Implausible. A clause without a full stop. */
  | { readonly kind: 'refused'; readonly because: string }

const accepted: ReportVerdict = { kind: 'accepted' }
const ignored: ReportVerdict = { kind: 'ignored' }

/** Nodes have about ten resources; a device plugin adds one or two. */
const mostResources = 64
const compared = ['memory', 'ephemeral-storage', 'pods'] as const
/** A node may differ from the catalogue by one part in this number. */
const tolerance = 10

/**
 * Checks a report.
 * @param expected the size in the catalogue, without other reports; undefined for a flavor that is not listed, whose
 * reports cannot be checked.
 */
export function judgeReport(report: NodeReport, expected: NodeSize | undefined): ReportVerdict {
  const { nodeName, flavor, nodeGroup, role, capacity } = report
  if (nodeGroup === undefined || role !== 'worker') return ignored
  if (isNothing(ownValue(capacity, 'cpu')) || isNothing(ownValue(capacity, 'memory'))) return ignored
  if (!isNodeOf(nodeGroup.name, nodeName))
    return refused(`nodes of NodeGroup ${nodeGroup.name} are called ${nodeGroup.name}-node0 and so on`)
  if (nodeGroup.flavor !== flavor)
    return refused(`NodeGroup ${nodeGroup.name} has flavor ${nodeGroup.flavor}, the node ${flavor}`)
  const problem = amountsProblem(report) ?? (expected && differenceProblem(report, expected))
  return problem === undefined ? accepted : refused(problem)
}

/**
 * The minimum of two reports, per resource. A resource that only one node has does not belong to the flavor.
 * Independent of the order of reports.
 */
export function smallerSize(a: NodeSize, b: NodeSize): NodeSize {
  return {
    capacity: smallerAmounts(a.capacity, b.capacity),
    allocatable: smallerAmounts(a.allocatable, b.allocatable),
  }
}

export function isSameSize(a: NodeSize, b: NodeSize): boolean {
  return isSameAmounts(a.capacity, b.capacity) && isSameAmounts(a.allocatable, b.allocatable)
}

function refused(because: string): ReportVerdict {
  return { kind: 'refused', because }
}

function isNothing(amount: number | undefined): boolean {
  return amount === undefined || amount === 0
}

/** Whether the platform gives this name to a node of the group. */
function isNodeOf(nodeGroup: string, nodeName: string): boolean {
  const prefix = `${nodeGroup}-node`
  return nodeName.startsWith(prefix) && /^(0|[1-9]\d{0,8})$/.test(nodeName.slice(prefix.length))
}

function amountsProblem({ capacity, allocatable }: NodeSize): string | undefined {
  if (Object.keys(capacity).length > mostResources) return `it has more than ${mostResources} resources`
  for (const resource of new Set([...Object.keys(capacity), ...Object.keys(allocatable)])) {
    const has = ownValue(capacity, resource)
    const gives = ownValue(allocatable, resource)
    if (has === undefined) return `its allocatable has ${resource}, its capacity has not`
    if (gives === undefined) return `its capacity has ${resource}, its allocatable has not`
    if (!isAmount(has) || !isAmount(gives)) return `its ${resource} is not a quantity`
    if (gives > has)
      return `its allocatable ${resource} of ${formatResource(resource, gives)} is more than its capacity of ${formatResource(resource, has)}`
  }
  return undefined
}

function isAmount(amount: number): boolean {
  return Number.isFinite(amount) && amount >= 0
}

function differenceProblem(report: NodeSize, expected: NodeSize): string | undefined {
  const cpu = ownValue(report.capacity, 'cpu') ?? 0
  const wanted = ownValue(expected.capacity, 'cpu') ?? 0
  if (cpu !== wanted)
    return `its cpu of ${formatResource('cpu', cpu)} is not the ${formatResource('cpu', wanted)} of the catalogue`
  for (const [part, told, known] of [
    ['capacity', report.capacity, expected.capacity],
    ['allocatable', report.allocatable, expected.allocatable],
  ] as const)
    for (const resource of part === 'allocatable' ? ['cpu', ...compared] : compared) {
      const amount = ownValue(told, resource)
      const usual = ownValue(known, resource) ?? 0
      if (amount === undefined) return `it does not report its ${resource}`
      if (Math.abs(amount - usual) * tolerance > usual)
        return `its ${part} of ${resource}, ${formatResource(resource, amount)}, is more than a tenth from the ${formatResource(resource, usual)} of the catalogue`
    }
  return undefined
}

function smallerAmounts(a: Resources, b: Resources): Resources {
  const smaller: Record<string, number> = {}
  for (const [resource, amount] of Object.entries(a)) {
    const other = ownValue(b, resource)
    if (other !== undefined) setOwn(smaller, resource, Math.min(amount, other))
  }
  return smaller
}

function isSameAmounts(a: Resources, b: Resources): boolean {
  const entries = Object.entries(a)
  return (
    entries.length === Object.keys(b).length &&
    entries.every(([resource, amount]) => ownValue(b, resource) === amount)
  )
}
