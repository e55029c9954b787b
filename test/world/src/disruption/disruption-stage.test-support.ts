/** Words for stories about nodes that go because others serve as well. */
import type { TestContext } from 'node:test'
import {
  disruptedTaint,
  type InstanceType,
  karpenterKinds,
  kinds,
  labels,
  type NodePool,
  type PodSpec,
  sameTaint,
} from '@tenon/api'
import { type LogFields, type Logger, rfc3339, silentLogger } from '@tenon/runtime'
import { Stage } from '../testing/stage.test-support.ts'
import { aType } from '../testing/pools.test-support.ts'

type StageOptions = NonNullable<Parameters<typeof Stage.open>[1]>
export type DisruptionSpec = NonNullable<NodePool['spec']['disruption']>

const medium: InstanceType = aType('medium', 4)

interface DisruptionStageOptions extends StageOptions {
  readonly disruption?: Partial<DisruptionSpec>
  /** What the cloud sells; its instances are of type `medium` by default. */
  readonly types?: readonly InstanceType[]
}

/** A stage whose pool `default` lets every node go for any reason as soon as there is one. */
export async function openDisruption(
  t: Pick<TestContext, 'after'>,
  { disruption, types = [medium], pool, idle = false, ...options }: DisruptionStageOptions = {},
): Promise<Stage> {
  const wanted = { consolidateAfter: '0s', budgets: [{ nodes: '100%' }], ...disruption }
  const stage = await Stage.open(t, { ...options, idle: true, pool: { ...pool, disruption: wanted } })
  stage.cloud.instanceTypes = types
  if (!idle) await stage.start()
  return stage
}

/** Changes `spec.disruption` of a NodePool. */
export function setDisruption(stage: Stage, disruption: Partial<DisruptionSpec>, pool = 'default'): void {
  stage.patch(karpenterKinds.nodePool, pool, { spec: { disruption } })
}

/** Lets this many nodes of the pool go at a time. */
export function setBudget(stage: Stage, nodes: string, pool = 'default'): void {
  setDisruption(stage, { budgets: [{ nodes }] }, pool)
}

/** Names of the claims that are not on their way out, in order. */
export function left(stage: Stage): readonly string[] {
  return stage.world
    .claims()
    .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
    .map(({ metadata }) => metadata.name)
    .toSorted()
}

/** Claims whose nodes are kept free of new pods, by name. */
export function tainted(stage: Stage): readonly string[] {
  return stage.world
    .nodes()
    .filter(({ spec }) => (spec?.taints ?? []).some((taint) => sameTaint(taint, disruptedTaint)))
    .map(({ metadata }) => metadata.name.replace(/^node-/, ''))
    .toSorted()
}

/** Texts of the events of a reason about an object, `Kind/name`. */
export function eventMessages(stage: Stage, reason: string, object: string): readonly string[] {
  return stage
    .events(reason)
    .filter((event) => event.object === object)
    .map(({ message }) => message)
}

/** Puts the condition on the claim as if it had been found out now. */
export function setCondition(
  stage: Stage,
  claim: string,
  type: string,
  reason: string = type,
  status: 'True' | 'False' = 'True',
): void {
  const others = (stage.claimNow(claim)?.status?.conditions ?? []).filter((each) => each.type !== type)
  const lastTransitionTime = rfc3339(stage.now)
  const condition = { type, status, reason, message: reason, lastTransitionTime }
  stage.patch(karpenterKinds.nodeClaim, claim, { status: { conditions: [...others, condition] } }, 'status')
}

/** Puts the taint of disrupted nodes on a Node. */
export function setTaint(stage: Stage, node: string): void {
  stage.patch(kinds.node, node, { spec: { taints: [disruptedTaint] } })
}

/** Node labels that consolidation looks at. */
export const mediumLabels: Readonly<Record<string, string>> = {
  [labels.instanceType]: 'medium',
  [labels.zone]: 'zone-1',
  [labels.capacityType]: 'on-demand',
}

/** The claims that have drifted, by name; all others have not. */
export function setDrifted(stage: Stage, ...claims: readonly string[]): void {
  stage.cloud.onIsDrifted = ({ metadata }) => (claims.includes(metadata.name) ? 'ImageChanged' : undefined)
}

/** Keeps errors that are logged. */
export class LoggedErrors implements Logger {
  readonly lines: { readonly message: string; readonly fields: LogFields }[] = []

  debug(): void {
    // Only errors are kept.
  }
  info(): void {
    // Only errors are kept.
  }
  warn(): void {
    // Only errors are kept.
  }
  error(message: string, fields: LogFields = {}): void {
    this.lines.push({ message, fields })
  }
  with(own: LogFields): Logger {
    return {
      ...silentLogger,
      error: (message, fields) => {
        this.error(message, { ...own, ...fields })
      },
    }
  }
}

/** How often a method has looked at the nodes it is about. */
export async function looks(stage: Stage, consolidationType: string): Promise<number> {
  const series = { consolidation_type: consolidationType }
  return await stage.metric('voluntary_disruption_decision_evaluation_duration_seconds', series)
}

/** Resource requests of a pod. */
export function cpu(amount: string): { readonly spec: Partial<PodSpec> } {
  const resources = { requests: { cpu: amount } }
  return { spec: { containers: [{ name: 'app', image: 'registry.k8s.io/pause', resources }] } }
}
