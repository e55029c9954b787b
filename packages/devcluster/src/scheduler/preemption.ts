import type { PodDisruptionBudget } from '@tenon/api'
import { integerBetween, type Random } from '@tenon/runtime'
import {
  type ClusterView,
  type LabelMatcher,
  labelMatcher,
  type NodeEntry,
  PodCycle,
  type PodFacts,
  unavailableMessage,
} from '@tenon/filters'
import type { Diagnosis, Placer } from './placement.ts'

/** Pods to delete on a node, so that another fits. */
interface Candidate {
  readonly entry: NodeEntry
  /** Highest priority first. */
  readonly victims: readonly PodFacts[]
  readonly budgetViolations: number
}

/** Which pods a pod may preempt on which node, or why none. */
export type Preemption =
  | { readonly kind: 'candidate'; readonly candidate: Candidate }
  | {
      readonly kind: 'none'
      readonly message: string
      /** Whether preemption for the pod is in progress already. */
      readonly isUnderWay: boolean
    }

interface Budget {
  readonly namespace: string
  readonly selector: LabelMatcher
  readonly allowed: number
}

const leastCandidates = 100
const candidateShare = 0.1
const notHelpful = ['Preemption is not helpful for scheduling']
const noVictims = ['No preemption victims found for incoming pod']

/** Looks for lower-priority pods whose removal lets a rejected pod fit. Writes nothing. */
export function findPreemption(
  cycle: PodCycle,
  diagnosis: Diagnosis,
  placer: Placer,
  budgets: readonly PodDisruptionBudget[],
  random: Random,
): Preemption {
  const { facts, view } = cycle
  if (facts.pod.spec.preemptionPolicy === 'Never') {
    return none('not eligible due to preemptionPolicy=Never.')
  }
  if (waitsForVictims(cycle, diagnosis, placer)) {
    return { ...none('not eligible due to a terminating pod on the nominated node.'), isUnderWay: true }
  }
  const hopeful = [...diagnosis.rejections].filter(([, rejection]) => rejection.helpedByPreemption)
  const failures: (readonly string[])[] = []
  for (let rest = diagnosis.total - hopeful.length; rest > 0; rest--) failures.push(notHelpful)
  const candidates: Candidate[] = []
  const compiled = budgets.map(compileBudget)
  const wanted = Math.max(leastCandidates, Math.floor(hopeful.length * candidateShare))
  const offset = hopeful.length === 0 ? 0 : integerBetween(random, 0, hopeful.length - 1)
  for (let step = 0; step < hopeful.length && candidates.length < wanted; step++) {
    const [entry] = hopeful[(offset + step) % hopeful.length] as (typeof hopeful)[number]
    const outcome = tryNode(facts, view, entry, placer, compiled)
    if ('victims' in outcome) candidates.push(outcome)
    else failures.push(outcome)
  }
  const candidate = candidates.toSorted(byHarm)[0]
  return candidate === undefined
    ? none(unavailableMessage(diagnosis.total, failures))
    : { kind: 'candidate', candidate }
}

function none(message: string): Extract<Preemption, { kind: 'none' }> {
  return { kind: 'none', message, isUnderWay: false }
}

/** A pod that has preempted waits while its victims are terminating. */
function waitsForVictims(cycle: PodCycle, diagnosis: Diagnosis, placer: Placer): boolean {
  const { facts } = cycle
  const entry = placer.nominatedNode(cycle)
  if (entry === undefined) return false
  if (diagnosis.rejections.get(entry)?.helpedByPreemption === false) return false
  return [...entry.pods.values()].some((one) => one.terminating && one.priority < facts.priority)
}

/** The victims on one node, or why there are none. Undoes its removals. */
function tryNode(
  facts: PodFacts,
  view: ClusterView,
  entry: NodeEntry,
  placer: Placer,
  budgets: readonly Budget[],
): Candidate | readonly string[] {
  const { index } = view
  const before = [...entry.pods.values()]
  const lower = before.filter((one) => one.priority < facts.priority)
  if (lower.length === 0) return noVictims
  // A separate cycle, as the trial changes the state that the pod's rules are computed from.
  const cycle = new PodCycle(facts, view)
  for (const one of lower) index.release(one.uid)
  try {
    const rejection = placer.check(cycle, entry)
    return rejection === undefined ? spareMost(cycle, entry, lower, placer, budgets) : rejection.reasons
  } finally {
    for (const one of lower) index.assign(one, entry.name)
    entry.arrange(before)
  }
}

/** Puts back as many pods as fit besides the new one: those with a PDB first, then by importance. */
function spareMost(
  cycle: PodCycle,
  entry: NodeEntry,
  lower: readonly PodFacts[],
  placer: Placer,
  budgets: readonly Budget[],
): Candidate {
  const { violating, others } = splitByBudget(lower.toSorted(byImportance), budgets)
  const mustGo = (one: PodFacts): boolean => {
    cycle.view.index.assign(one, entry.name)
    if (placer.check(cycle, entry) === undefined) return false
    cycle.view.index.release(one.uid)
    return true
  }
  const broken = violating.filter(mustGo)
  const victims = [...broken, ...others.filter(mustGo)]
  return { entry, victims: victims.toSorted(byImportance), budgetViolations: broken.length }
}

function splitByBudget(
  pods: readonly PodFacts[],
  budgets: readonly Budget[],
): { readonly violating: PodFacts[]; readonly others: PodFacts[] } {
  const left = new Map(budgets.map((budget) => [budget, budget.allowed]))
  const violating: PodFacts[] = []
  const others: PodFacts[] = []
  for (const one of pods) {
    let violates = false
    for (const budget of budgets) {
      if (budget.namespace !== one.namespace || !budget.selector.matches(one.labels)) continue
      const remaining = (left.get(budget) ?? 0) - 1
      left.set(budget, remaining)
      if (remaining < 0) violates = true
    }
    if (violates) violating.push(one)
    else others.push(one)
  }
  return { violating, others }
}

function compileBudget(budget: PodDisruptionBudget): Budget {
  const { selector } = budget.spec
  // In preemption an empty selector protects nothing, although it does in evictions.
  const empty = selector === undefined || Object.values(selector).every((one) => size(one) === 0)
  return {
    namespace: budget.metadata.namespace ?? '',
    selector: labelMatcher(empty ? undefined : selector),
    allowed: budget.status?.disruptionsAllowed ?? 0,
  }
}

function size(part: object): number {
  return Object.keys(part).length
}

/** Higher priority first, then the longer running. */
function byImportance(a: PodFacts, b: PodFacts): number {
  return b.priority - a.priority || startOf(a) - startOf(b) || (a.uid < b.uid ? -1 : 1)
}

function startOf(facts: PodFacts): number {
  const text = facts.pod.status?.startTime
  return text === undefined ? Number.MAX_SAFE_INTEGER : Date.parse(text)
}

/** Fewest PDB violations, least important victims, fewest victims, the youngest. */
function byHarm(a: Candidate, b: Candidate): number {
  return (
    a.budgetViolations - b.budgetViolations ||
    (a.victims[0]?.priority ?? 0) - (b.victims[0]?.priority ?? 0) ||
    prioritySum(a) - prioritySum(b) ||
    a.victims.length - b.victims.length ||
    earliestStart(b) - earliestStart(a)
  )
}

/** Priorities are shifted to be positive, so that more victims weigh more. */
function prioritySum(candidate: Candidate): number {
  return candidate.victims.reduce((sum, one) => sum + one.priority + 2 ** 31, 0)
}

function earliestStart(candidate: Candidate): number {
  const highest = candidate.victims[0]?.priority
  return Math.min(...candidate.victims.filter((one) => one.priority === highest).map(startOf))
}
