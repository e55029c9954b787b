/** What a report says about its figures, the same as text and as a page (adoption.md 1). */
import type { ObstacleKind, RiskKind } from '@tenon/ask/report'
import type { FoundAutoscaler } from './gather.ts'
import type { PrintedCostTable, PrintedObstacle, PrintedPlan, PrintedReport } from './printed.ts'

export interface ObstacleWords {
  readonly title: string
  /** What the amount means, after `12.00 EUR a month`. */
  readonly amount: string
  readonly fix: string
}

const saved = 'more could be saved without them'

export const obstacleWords: Readonly<Record<ObstacleKind, ObstacleWords>> = {
  budget: {
    title: 'PodDisruptionBudgets that allow no eviction',
    amount: saved,
    fix: 'Set maxUnavailable: 1, or run one replica more; leave each pod to one budget.',
  },
  doNotDisrupt: {
    title: 'Pods and nodes that must not be disrupted',
    amount: saved,
    fix: 'Remove karpenter.sh/do-not-disrupt, or safe-to-evict: "false", where a restart does no harm, or give it a duration.',
  },
  nodePool: {
    title: 'NodePools that never remove nodes with pods',
    amount: saved,
    fix: 'Set consolidationPolicy: WhenEmptyOrUnderutilized, and budgets above 0.',
  },
  localVolume: {
    title: 'Volumes of a single node',
    amount: saved,
    fix: 'Keep on volumes of the cloud what need not be local.',
  },
  nodePoolTypes: {
    title: 'NodePools that exclude cheaper instance types',
    amount: 'more could be saved from nothing with all types',
    fix: 'Widen the requirements on instance types.',
  },
  singleReplica: {
    title: 'Workloads with a single replica',
    amount: 'of the saving needs a restart of these',
    fix: 'Run a second replica, or accept the restart.',
  },
  daemons: {
    title: 'DaemonSets that take more than a tenth of a node',
    amount: 'is paid for them on such nodes',
    fix: 'Lower their requests, or run fewer and larger nodes.',
  },
  noRequests: {
    title: 'Pods without requests',
    amount: '',
    fix: 'Nobody can plan room for them: set requests of CPU and memory.',
  },
  unusedRequests: {
    title: 'Requests of more than twice the usage',
    amount: 'is paid for what was not used at this moment',
    fix: 'Lower the requests, or let a VerticalPodAutoscaler do so.',
  },
}

export const riskWords: Readonly<Record<RiskKind, { readonly title: string; readonly fix: string }>> = {
  noType: {
    title: 'Pods that wait and would get no node',
    fix: 'tenon explain pods -A says why, and what would help.',
  },
  noSecondHome: {
    title: 'Pods that run, but would fit no new node of a known price',
    fix: 'They wait once their node goes. Check their requests and selectors, the NodePools, and the prices.',
  },
  spread: {
    title: 'Spread constraints that do not hold',
    fix: 'Pods of these workloads may wait. Add domains, or use ScheduleAnyway.',
  },
  limit: {
    title: 'Limits of NodePools that are nearly reached',
    fix: 'Raise spec.limits before the next peak.',
  },
  oldNode: { title: 'Nodes older than 30 days', fix: 'Set expireAfter, so that nodes get new images.' },
  versionSkew: {
    title: 'Kubelets too old or too new for the API server',
    fix: 'Replace these nodes: Kubernetes supports three minor versions of difference.',
  },
}

export const tableWords = {
  nodepool: 'NodePool or node group',
  type: 'Instance type',
  namespace: 'Namespace',
  owner: 'Workload',
} as const

const autoscalerNames: Readonly<Record<FoundAutoscaler['kind'], string>> = {
  tenon: 'Tenon',
  karpenter: 'Karpenter',
  clusterAutoscaler: 'Cluster Autoscaler',
}

/** Who adds nodes now, as a sentence. */
export function autoscalerText({ autoscalers }: PrintedReport): string {
  if (autoscalers.length === 0) return 'No autoscaler of nodes was found.'
  const byKind = Map.groupBy(autoscalers, ({ kind }) => kind)
  return Array.from(
    byKind,
    ([kind, each]) => `${autoscalerNames[kind]} runs here: ${each.map(({ by }) => by).join(', ')}.`,
  ).join(' ')
}

/** `1,234.50`. */
export function decimalText(amount: number): string {
  return amount.toLocaleString('en-US', { minimumFractionDigits: 2, maximumFractionDigits: 2 })
}

/** `1,234.50 EUR`; without a currency the number alone. */
export function amountText(amount: number, { currency }: PrintedReport): string {
  return currency === undefined ? decimalText(amount) : `${decimalText(amount)} ${currency}`
}

/** What an obstacle costs, as the beginning of a sentence, and what the amount means. */
export function obstacleCost(
  { kind, perMonth }: PrintedObstacle,
  report: PrintedReport,
): { readonly figure: string; readonly meaning: string } {
  return perMonth === undefined
    ? { figure: 'Cost unknown', meaning: '' }
    : { figure: `${amountText(perMonth, report)} a month`, meaning: ` ${obstacleWords[kind].amount}` }
}

/** A headline: what it is, the figure, and what it counts. */
export interface Headline {
  readonly title: string
  readonly figure: string
  readonly about: string
}

export function headlines(report: PrintedReport): readonly Headline[] {
  const { now, plans, unpriced } = report
  const without =
    unpriced.length === 0 ? '' : `; ${countText(unpriced.length, 'node')} of unknown price not included`
  const nodes = `${countText(now.nodes, 'node')}, ${countText(now.pods, 'pod')}`
  if (now.price === undefined || now.idle === undefined || plans === undefined)
    return [
      { title: 'Cost a month', figure: 'unknown', about: `${nodes}; no price is known` },
      {
        title: 'Requested',
        figure: percentText(now.cpu),
        about: `of CPU, ${percentText(now.memory)} of memory`,
      },
    ]
  const { byMoves, fromNothing } = plans
  return [
    { title: 'Cost a month', figure: amountText(now.price.perMonth, report), about: nodes + without },
    {
      title: 'Of it idle',
      figure: amountText(now.idle.perMonth, report),
      about: `Pods request ${percentText(now.cpu)} of CPU and ${percentText(now.memory)} of memory`,
    },
    {
      title: 'With Tenon, by moves allowed now',
      figure: amountText(byMoves.price.perMonth, report),
      about: planText(byMoves, report),
    },
    {
      title: 'With Tenon, from nothing',
      figure: amountText(fromNothing.price.perMonth, report),
      about: planText(fromNothing, report),
    },
  ]
}

function planText({ evictions, nodes, removed, savedPerMonth }: PrintedPlan, report: PrintedReport): string {
  if (savedPerMonth === 0 && removed === 0) return 'Nothing cheaper was found: the cluster as it is'
  return `${amountText(savedPerMonth, report)} less; ${countText(nodes, 'node')}, ${removed} removed, at least ${countText(evictions, 'eviction')}`
}

export function countText(count: number, noun: string): string {
  return `${count.toLocaleString('en-US')} ${noun}${count === 1 ? '' : 's'}`
}

function percentText({ requested, allocatable }: PrintedReport['now']['cpu']): string {
  return allocatable === 0 ? 'an unknown part' : `${Math.round((requested / allocatable) * 100)} %`
}

/** What limits the report, a sentence each. */
export function caveats(report: PrintedReport): readonly string[] {
  const { isUsageKnown, notRead, now, plans, unpriced, unreadable } = report
  const types = [...new Set(unpriced.map(({ type }) => type ?? 'without a type'))].toSorted()
  return [
    ...(unpriced.length === 0
      ? []
      : [
          `The price of ${countText(unpriced.length, 'node')} is not known (${few(types)}). They are in no sum, and stay in each plan.`,
        ]),
    ...(plans === undefined && now.nodes > 0
      ? ['Without prices nothing is planned: see the next step.']
      : []),
    ...(isUsageKnown ? [] : ['Usage was not measured: nothing is said about requests above it.']),
    ...(unreadable.length === 0
      ? []
      : [
          `${countText(unreadable.length, 'object')} cannot be read, and in no figure: ${few(unreadable, undefined, 3)}.`,
        ]),
    ...(notRead.length === 0
      ? []
      : [`No right to read ${notRead.join(', ')}: what they would say is unknown.`]),
    'Amounts of obstacles overlap: they cannot be added up.',
  ]
}

/** The first names, and how many more there are of `all`. */
export function few(names: readonly string[], all = names.length, shown = 8): string {
  const more = all - Math.min(shown, names.length)
  return `${names.slice(0, shown).join(', ')}${more > 0 ? ` and ${more} more` : ''}`
}

const shownGroups = 15

/** The first groups of a table, and what the others are together. */
export function shortened({
  groups,
  idlePerMonth,
}: PrintedCostTable): PrintedCostTable & { readonly more: string } {
  const rest = groups.slice(shownGroups)
  const sum = rest.reduce((total, { perMonth = 0 }) => total + perMonth, 0)
  return {
    groups: groups.slice(0, shownGroups),
    idlePerMonth,
    more: rest.length === 0 ? '' : `${rest.length} more with ${decimalText(sum)} a month`,
  }
}
