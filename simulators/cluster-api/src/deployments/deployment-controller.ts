/** Manages the MachineSets of MachineDeployments (cluster-api.md 18). */
import { conditionOf, isConditionTrue, ownValue, selectorText } from '@tenon/api'
import { defaultReplicas, hold, type HubParts, isPaused, release } from '../hub-parts.ts'
import {
  controllerUid,
  finalizers,
  type FullDeployment,
  type FullMachine,
  type FullSet,
  isLeaving,
} from '../kinds.ts'
import { newCondition, writeStatus } from '../statuses.ts'
import { newSet, revisionAnnotation, syncSet } from './machine-set-of.ts'
import { onDeleteStep, pausedStep, rollingStep, type RolloutPlan, type SetFigures } from './rollout.ts'
import { templateHash } from './template.ts'

/** A MachineSet with its Machines. */
interface SetView {
  readonly set: FullSet
  readonly machines: readonly FullMachine[]
}

/** One pass over a MachineDeployment. */
export function reconcileDeployment(parts: HubParts, namespace: string, name: string): undefined {
  const { api, kinds } = parts
  const deployment = api.get(kinds.deployment, namespace, name)
  if (deployment === undefined || isPaused(parts, deployment)) return undefined
  if (isLeaving(deployment)) {
    end(parts, deployment)
    return undefined
  }
  hold(api, kinds.deployment, deployment, finalizers.deployment)
  const complete = withDefaults(parts, deployment)
  const hash = templateHash(complete)
  const views = viewsOf(parts, complete)
  const current = views.find(({ set }) => ownValue(set.metadata.labels, 'machine-template-hash') === hash)
  const isRolloutStopped = complete.spec?.paused === true
  const former = views.filter((view) => view !== current)
  const number = Math.max(0, ...former.map(({ set }) => revisionOf(set))) + 1
  if (current !== undefined)
    syncSet(parts, complete, current.set, { hash, number: Math.max(number, revisionOf(current.set)) })
  else if (!isRolloutStopped) {
    api.create(kinds.set, newSet(parts, complete, { hash, number }))
    // It is resized in the next pass, which this write triggers.
    report(parts, complete, views, undefined)
    return undefined
  }
  const plan: RolloutPlan = {
    wanted: complete.spec?.replicas ?? 0,
    ...limitsOf(complete),
    current: current === undefined ? noSet : figuresOf(current),
    former: former.map(figuresOf),
  }
  resize(parts, views, isRolloutStopped ? pausedStep(plan) : stepOf(complete, plan))
  removeEmpty(parts, former)
  report(parts, complete, viewsOf(parts, complete), current?.set)
  return undefined
}

const revisionOf = ({ metadata }: FullSet): number =>
  Number.parseInt(ownValue(metadata.annotations, revisionAnnotation) ?? '', 10) || 0

const noSet: SetFigures = { name: '', replicas: 0, machines: 0, staying: 0, available: 0 }

const isAvailable = (machine: FullMachine): boolean =>
  !isLeaving(machine) && isConditionTrue(machine, 'Available')

function figuresOf({ set, machines }: SetView): SetFigures {
  return {
    name: set.metadata.name,
    replicas: set.spec?.replicas ?? 0,
    machines: machines.length,
    staying: machines.filter((machine) => !isLeaving(machine)).length,
    available: machines.filter(isAvailable).length,
  }
}

/** The defaults of Cluster API's webhook. */
function withDefaults({ api, kinds, names }: HubParts, deployment: FullDeployment): FullDeployment {
  const { annotations, labels, name, namespace } = deployment.metadata
  const { clusterName = '', replicas, selector, template } = deployment.spec ?? {}
  const own = { [names.clusterName]: clusterName, [names.deploymentName]: name }
  const isComplete =
    replicas !== undefined &&
    selector?.matchLabels !== undefined &&
    ownValue(labels, names.clusterName) !== undefined &&
    ownValue(template?.metadata?.labels, names.deploymentName) !== undefined
  if (isComplete) return deployment
  return api.patch(kinds.deployment, namespace, name, {
    metadata: { labels: { [names.clusterName]: clusterName } },
    spec: {
      // Once set, they are never removed.
      replicas: replicas ?? defaultReplicas(names, annotations, deployment.status?.replicas),
      selector: { matchLabels: { ...selector?.matchLabels, ...own } },
      template: { metadata: { labels: own } },
    },
  })
}

function viewsOf({ api, kinds }: HubParts, { metadata }: FullDeployment): readonly SetView[] {
  const { namespace = '', uid } = metadata
  const machines = api.list(kinds.machine, { namespace })
  const bornMs = ({ metadata: { creationTimestamp = '' } }: FullSet): number => Date.parse(creationTimestamp)
  return api
    .list(kinds.set, { namespace })
    .filter((set) => controllerUid(set) === uid)
    .toSorted((a, b) => bornMs(a) - bornMs(b))
    .map((set) => ({
      set,
      machines: machines.filter((machine) => controllerUid(machine) === set.metadata.uid),
    }))
}

function limitsOf({ spec }: FullDeployment): Pick<RolloutPlan, 'maxSurge' | 'maxUnavailable'> {
  const wanted = spec?.replicas ?? 0
  const { maxSurge = 1, maxUnavailable = 0 } =
    spec?.rollout?.strategy?.rollingUpdate ?? spec?.strategy?.rollingUpdate ?? {}
  return {
    maxSurge: amountOf(maxSurge, wanted, Math.ceil),
    maxUnavailable: amountOf(maxUnavailable, wanted, Math.floor),
  }
}

function amountOf(amount: number | string, of: number, round: (value: number) => number): number {
  if (typeof amount === 'number') return amount
  const value = Number.parseInt(amount, 10) || 0
  return amount.endsWith('%') ? round((value * of) / 100) : value
}

function stepOf({ spec }: FullDeployment, plan: RolloutPlan): ReadonlyMap<string, number> {
  const type = spec?.rollout?.strategy?.type ?? spec?.strategy?.type
  return type === 'OnDelete' ? onDeleteStep(plan) : rollingStep(plan)
}

function resize(
  { api, kinds }: HubParts,
  views: readonly SetView[],
  step: ReadonlyMap<string, number>,
): void {
  for (const { set } of views) {
    const replicas = step.get(set.metadata.name)
    if (replicas !== undefined && replicas !== set.spec?.replicas)
      api.patch(kinds.set, set.metadata.namespace, set.metadata.name, { spec: { replicas } })
  }
}

/** Cluster API keeps no history. */
function removeEmpty({ api, kinds }: HubParts, former: readonly SetView[]): void {
  for (const { set, machines } of former)
    if (set.spec?.replicas === 0 && machines.length === 0 && !isLeaving(set))
      api.delete(kinds.set, set.metadata.namespace, set.metadata.name)
}

function end(parts: HubParts, deployment: FullDeployment): void {
  const { api, kinds } = parts
  const views = viewsOf(parts, deployment)
  for (const { set } of views)
    if (!isLeaving(set)) api.delete(kinds.set, set.metadata.namespace, set.metadata.name)
  if (views.length === 0) release(api, kinds.deployment, deployment, finalizers.deployment)
}

function report(
  parts: HubParts,
  deployment: FullDeployment,
  views: readonly SetView[],
  current: FullSet | undefined,
): void {
  const { kinds } = parts
  const { generation = 0 } = deployment.metadata
  const wanted = deployment.spec?.replicas ?? 0
  const all = views.flatMap(({ machines }) => machines)
  const isUpToDate = (machine: FullMachine) => controllerUid(machine) === current?.metadata.uid
  const upToDate = all.filter(isUpToDate).length
  const ready = all.filter((machine) => isConditionTrue(machine, 'Ready')).length
  const available = all.filter(isAvailable).length
  const isRolling = all.some(
    (machine) => !isLeaving(machine) && conditionOf(machine, 'UpToDate')?.status === 'False',
  )
  const status = {
    observedGeneration: generation,
    selector: selectorText(deployment.spec?.selector ?? {}),
    replicas: all.length,
    readyReplicas: ready,
    availableReplicas: available,
    ...(kinds.version === 'v1beta1'
      ? { updatedReplicas: upToDate, unavailableReplicas: Math.max(0, wanted - available) }
      : { upToDateReplicas: upToDate }),
    phase: phaseOf(wanted, all.length),
  }
  writeStatus(parts, kinds.deployment, deployment, status, [
    newCondition('Available', available >= wanted - limitsOf(deployment).maxUnavailable, [
      'Available',
      'NotAvailable',
    ]),
    newCondition('RollingOut', isRolling, ['RollingOut', 'NotRollingOut']),
    newCondition('ScalingUp', all.length < wanted, ['ScalingUp', 'NotScalingUp']),
    newCondition('ScalingDown', all.length > wanted, ['ScalingDown', 'NotScalingDown']),
    newCondition('MachinesUpToDate', !isRolling, ['UpToDate', 'NotUpToDate']),
    newCondition('Paused', false, ['Paused', 'NotPaused']),
  ])
}

function phaseOf(wanted: number, there: number): string {
  if (there === wanted) return 'Running'
  return there < wanted ? 'ScalingUp' : 'ScalingDown'
}
