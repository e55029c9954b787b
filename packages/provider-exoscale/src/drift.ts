/** Detects differences between an instance and its node class. */
import { karpenterKinds, type NodeClaim, ownValue } from '@tenon/api'
import { type EventRecorder, isKubeError, type KubeClient } from '@tenon/kube'
import type { ExoscaleClient } from './api/client.ts'
import type { ExoscaleInstance, Reference } from './api/types.ts'
import { exoscaleAnnotations } from './identifiers.ts'
import { wantedInstanceLabels } from './launch/boot-requests.ts'
import { nodeClassHash } from './nodeclass/settings.ts'
import type { TemplateResolver } from './nodeclass/template.ts'
import type { ExoscaleNodeClass } from './nodeclass/types.ts'

export type DriftReason =
  | 'ImageID'
  | 'AntiAffinityGroups'
  | 'SecurityGroups'
  | 'PrivateNetworks'
  | 'NodeClassSettings'

/** The settings with which an instance was created, stored on its claim. */
interface Baseline {
  readonly template: string | undefined
  readonly settings: string | undefined
}

/** The first difference, in fixed order. A missing baseline is not a difference. */
function driftOf(
  claim: NodeClaim,
  nodeClass: ExoscaleNodeClass,
  instance: ExoscaleInstance,
  resolvedTemplate: string | undefined,
): DriftReason | undefined {
  const { imageID } = claim.status ?? {}
  const baseline = baselineOf(claim)
  if (imageID !== undefined && instance.template?.id !== undefined && imageID !== instance.template.id) {
    return 'ImageID'
  }
  if (
    baseline.template !== undefined &&
    resolvedTemplate !== undefined &&
    baseline.template !== resolvedTemplate
  ) {
    return 'ImageID'
  }
  const { antiAffinityGroups, securityGroups, privateNetworks } = nodeClass.status ?? {}
  if (differ(antiAffinityGroups, instance['anti-affinity-groups'])) return 'AntiAffinityGroups'
  // If no groups are requested, the cloud may add its default group.
  if ((securityGroups ?? []).length > 0 && differ(securityGroups, instance['security-groups'])) {
    return 'SecurityGroups'
  }
  if (differ(privateNetworks, instance['private-networks'])) return 'PrivateNetworks'
  const hash = nodeClassHash(nodeClass.spec)
  if (sameVersion(baseline.settings, hash) && baseline.settings !== hash) return 'NodeClassSettings'
  return undefined
}

/**
 * What must be stored on the claim, so that later changes of the node class are detected. For instances that Tenon did
 * not launch, the baseline is the node class when they are first checked.
 */
function missingBaseline(
  claim: NodeClaim,
  nodeClass: ExoscaleNodeClass,
  resolvedTemplate: string | undefined,
): Readonly<Record<string, string>> {
  const baseline = baselineOf(claim)
  const hash = nodeClassHash(nodeClass.spec)
  return {
    ...(baseline.template === undefined &&
      resolvedTemplate !== undefined && { [exoscaleAnnotations.resolvedTemplate]: resolvedTemplate }),
    ...(!sameVersion(baseline.settings, hash) && { [exoscaleAnnotations.nodeClassHash]: hash }),
  }
}

export interface DriftDependencies {
  readonly api: Pick<ExoscaleClient, 'getInstance' | 'updateInstance' | 'waitForOperation'>
  readonly kube: Pick<KubeClient, 'patch'>
  readonly templates: TemplateResolver
  readonly events: EventRecorder
  readonly clusterId: string
}

/** Checks one instance for drift, and repairs its labels. */
export async function checkDrift(
  deps: DriftDependencies,
  claim: NodeClaim,
  nodeClass: ExoscaleNodeClass,
  instanceId: string,
  signal?: AbortSignal,
): Promise<DriftReason | undefined> {
  const instance = await deps.api.getInstance(instanceId, signal)
  const isClassReady = nodeClass.status?.conditions?.some(
    ({ type, status }) => type === 'Ready' && status === 'True',
  )
  const template = isClassReady ? await deps.templates.resolveRecent(nodeClass.spec, signal) : undefined
  const reason = driftOf(claim, nodeClass, instance, template)
  if (reason !== undefined) {
    const message = `The instance differs from ExoscaleNodeClass ${nodeClass.metadata.name}: ${reason}`
    deps.events.record({ object: claim, type: 'Normal', reason: 'DriftDetected', message, dedupe: [reason] })
    return reason
  }
  await keepBaseline(deps, claim, missingBaseline(claim, nodeClass, template))
  await repairLabels(deps, claim, instance, signal)
  return undefined
}

async function keepBaseline(
  { kube }: DriftDependencies,
  claim: NodeClaim,
  annotations: Readonly<Record<string, string>>,
): Promise<void> {
  if (Object.keys(annotations).length === 0) return
  try {
    await kube.patch(karpenterKinds.nodeClaim, { name: claim.metadata.name }, { metadata: { annotations } })
  } catch (error) {
    if (!isKubeError(error, 'notFound', 'conflict')) throw error
  }
}

/** Compares only our own labels; labels of users are kept. */
async function repairLabels(
  { api, clusterId }: DriftDependencies,
  claim: NodeClaim,
  instance: ExoscaleInstance,
  signal: AbortSignal | undefined,
): Promise<void> {
  const current = instance.labels ?? {}
  const wanted = wantedInstanceLabels(claim, clusterId)
  if (Object.entries(wanted).every(([key, value]) => ownValue(current, key) === value)) return
  const operation = await api.updateInstance(instance.id, { labels: { ...current, ...wanted } }, signal)
  await api.waitForOperation(operation, { signal })
}

function baselineOf(claim: NodeClaim): Baseline {
  const annotations = claim.metadata.annotations ?? {}
  return {
    template: annotations[exoscaleAnnotations.resolvedTemplate],
    settings: annotations[exoscaleAnnotations.nodeClassHash],
  }
}

function sameVersion(a: string | undefined, b: string): boolean {
  return a !== undefined && a.split('-', 1)[0] === b.split('-', 1)[0]
}

function differ(wanted: readonly string[] = [], actual: readonly Reference[] = []): boolean {
  const want = new Set(wanted)
  const have = new Set(actual.map((reference) => reference.id))
  return want.size !== have.size || [...want].some((id) => !have.has(id))
}
