/** How many replicas the MachineSets of a MachineDeployment get (cluster-api.md 18). */

/** What is known of one MachineSet. */
export interface SetFigures {
  readonly name: string
  /** What it asks for. */
  readonly replicas: number
  /** Machines that it has, those that are being deleted included. */
  readonly machines: number
  /** Machines that it has and that are not being deleted. */
  readonly staying: number
  readonly available: number
}

export interface RolloutPlan {
  /** Replicas of the MachineDeployment. */
  readonly wanted: number
  /** Machines above {@link wanted} at most, of a rolling update. */
  readonly maxSurge: number
  /** Machines below {@link wanted} that may be unavailable, of a rolling update. */
  readonly maxUnavailable: number
  /** That of the template as it is now. */
  readonly current: SetFigures
  /** Those of former templates, the oldest first. */
  readonly former: readonly SetFigures[]
}

type Replicas = ReadonlyMap<string, number>

const sum = (numbers: readonly number[]): number => numbers.reduce((total, each) => total + each, 0)

/** One step of a rolling update, or a change of size when there is nothing to roll. */
export function rollingStep(plan: RolloutPlan): Replicas {
  const current = grown(plan, plan.wanted + plan.maxSurge)
  return new Map([[plan.current.name, current], ...formerOfRollout(plan, current)])
}

/** One step where people delete the Machines of former templates themselves. */
export function onDeleteStep(plan: RolloutPlan): Replicas {
  const { former, wanted } = plan
  const current = grown(plan, wanted)
  // What has been deleted does not come back from a former template.
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

/** A change of size while rollouts are stopped: the MachineSet with Machines follows, the newest if there are several. */
export function pausedStep({ current, former, wanted }: RolloutPlan): Replicas {
  const target = [...former, current].findLast(({ replicas }) => replicas > 0) ?? former.at(-1) ?? current
  const others = [...former, current].filter(({ name }) => name !== target.name)
  const rest = sum(others.map(({ replicas }) => replicas))
  return new Map([[target.name, Math.max(0, wanted - rest)]])
}

/** The current MachineSet grows as far as `most` Machines altogether allow. */
function grown({ current, former, wanted }: RolloutPlan, most: number): number {
  if (current.replicas >= wanted) return wanted
  const there = sum([current, ...former].map(({ machines, replicas }) => Math.max(machines, replicas)))
  return current.replicas + Math.max(0, Math.min(most - there, wanted - current.replicas))
}

/** Former MachineSets shrink: first what is not available, then as far as enough stays available. */
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
