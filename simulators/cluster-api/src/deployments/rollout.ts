/** How many replicas the MachineSets of a MachineDeployment get (cluster-api.md 18). */

/** The figures of one MachineSet. */
export interface SetFigures {
  readonly name: string
  /** Its desired replicas. */
  readonly replicas: number
  /** Its Machines, including those being deleted. */
  readonly machines: number
  /** Its Machines that are not being deleted. */
  readonly staying: number
  readonly available: number
}

export interface RolloutPlan {
  /** Replicas of the MachineDeployment. */
  readonly wanted: number
  /** Maximum Machines above {@link wanted} in a rolling update. */
  readonly maxSurge: number
  /** Maximum unavailable Machines below {@link wanted} in a rolling update. */
  readonly maxUnavailable: number
  /** The MachineSet of the current template. */
  readonly current: SetFigures
  /** Those of former templates, oldest first. */
  readonly former: readonly SetFigures[]
}

type Replicas = ReadonlyMap<string, number>

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

/** One step of a rolling update, or a resize if nothing has to be rolled out. */
export function rollingStep(plan: RolloutPlan): Replicas {
  const current = grown(plan, plan.wanted + plan.maxSurge)
  return new Map([[plan.current.name, current], ...formerOfRollout(plan, current)])
}

/** One step with OnDelete, where users delete Machines of former templates. */
export function onDeleteStep(plan: RolloutPlan): Replicas {
  const { former, wanted } = plan
  const current = grown(plan, wanted)
  // Deleted Machines are not created again from a former template.
  const left = former.map(({ name, replicas, staying }) => [name, Math.min(replicas, staying)] as const)
  let surplus = current + sum(left.map(([, replicas]) => replicas)) - wanted
  const replicas = new Map([[plan.current.name, current]])
  for (const [name, before] of left) {
    const fewer = Math.max(0, Math.min(before, surplus))
    surplus -= fewer
    replicas.set(name, before - fewer)
  }
  return replicas
}

/**
 * A resize while rollouts are paused: several MachineSets share it in proportion to their replicas, and what rounding
 * leaves goes to the newest if they grow, to the oldest if they shrink.
 */
export function pausedStep({ current, former, maxSurge, wanted }: RolloutPlan): Replicas {
  const active = [...former, current].filter(({ replicas }) => replicas > 0)
  if (active.length <= 1) {
    const target = active[0] ?? former.at(-1) ?? current
    return new Map([[target.name, wanted]])
  }
  if (current.replicas === wanted && current.available === wanted)
    return new Map(former.map(({ name }) => [name, 0]))
  const before = sum(active.map(({ replicas }) => replicas))
  const more = (wanted === 0 ? 0 : wanted + maxSurge) - before
  let left = more
  const replicas = new Map<string, number>()
  for (const set of more > 0 ? active.toReversed() : active) {
    const share = Math.round((set.replicas * more) / before)
    const limited = more > 0 ? Math.min(share, left) : Math.max(share, left, -set.replicas)
    left -= limited
    replicas.set(set.name, set.replicas + limited)
  }
  const [first = current.name] = replicas.keys()
  replicas.set(first, Math.max(0, (replicas.get(first) ?? 0) + left))
  return replicas
}

/** The current MachineSet's replicas, if there may be `most` Machines in total. */
function grown({ current, former, wanted }: RolloutPlan, most: number): number {
  if (current.replicas >= wanted) return wanted
  const there = sum([current, ...former].map(({ machines, replicas }) => Math.max(machines, replicas)))
  return current.replicas + Math.max(0, Math.min(most - there, wanted - current.replicas))
}

/** Former MachineSets shrink: unavailable Machines first, then as many as availability allows. */
function formerOfRollout(plan: RolloutPlan, currentReplicas: number): Replicas {
  const { current, former, maxUnavailable, wanted } = plan
  const least = wanted - maxUnavailable
  const replicas = new Map(former.map((set) => [set.name, set.replicas]))
  const take = (name: string, most: number): number => {
    const before = replicas.get(name) ?? 0
    const fewer = Math.max(0, Math.min(before, most))
    replicas.set(name, before - fewer)
    return fewer
  }
  const pending = Math.max(0, currentReplicas - current.available)
  let spare = currentReplicas + sum([...replicas.values()]) - least - pending
  for (const set of former) spare -= take(set.name, Math.min(spare, set.replicas - set.available))
  const available =
    current.available + sum(former.map((set) => Math.min(set.available, replicas.get(set.name) ?? 0)))
  let surplus = Math.min(available - least, spare)
  for (const set of former) surplus -= take(set.name, surplus)
  return replicas
}
