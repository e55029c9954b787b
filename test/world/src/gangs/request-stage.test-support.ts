/** A stage with ProvisioningRequests: real kubelets and scheduler, nodes of 4 cores. */
import type { TestContext } from 'node:test'
import {
  autoscalingKinds,
  conditionOf,
  kinds,
  type NodePool,
  type PodSpec,
  type ProvisioningRequest,
} from '@tenon/api'
import { defaultSettings, type Settings } from '@tenon/operator'
import { openBuffers, podSpec, podTemplate } from '../capacity-buffers/buffer-stage.test-support.ts'
import type { Stage } from '../testing/stage.test-support.ts'
import type { WorldOptions } from '../world.ts'

const atomicClass = 'best-effort-atomic-scale-up.autoscaling.x-k8s.io'
export const checkClass = 'check-capacity.autoscaling.x-k8s.io'

const requestSettings: Partial<Settings> = {
  featureGates: { ...defaultSettings.featureGates, groupScheduling: true },
}

/** Opens the stage with the feature gate on; nothing is launched yet. */
export async function openRequests(
  t: TestContext,
  pool: Partial<NodePool['spec']> = {},
  options: Partial<WorldOptions> = {},
): Promise<Stage> {
  return await openBuffers(t, pool, { settings: requestSettings, servesRequests: true, ...options })
}

interface RequestOptions {
  readonly class?: string
  readonly count?: number
  readonly parameters?: Readonly<Record<string, string>>
  /** Names of PodTemplates; by default the one of the request's name. */
  readonly templates?: readonly string[]
}

/** A request for so many pods of each template, as Kueue makes one. */
export function request(
  stage: Stage,
  name: string,
  {
    class: provisioningClassName = atomicClass,
    count = 1,
    parameters,
    templates = [name],
  }: RequestOptions = {},
): void {
  stage.world.create(autoscalingKinds.provisioningRequest, {
    apiVersion: 'autoscaling.x-k8s.io/v1',
    kind: 'ProvisioningRequest',
    metadata: { name, namespace: 'default', labels: { 'kueue.x-k8s.io/managed': 'true' } },
    spec: {
      provisioningClassName,
      podSets: templates.map((template) => ({ podTemplateRef: { name: template }, count })),
      ...(parameters && { parameters }),
    },
  })
}

/** A PodTemplate of pods with so many cores, and a request for so many of them, both of this name. */
export function requested(
  stage: Stage,
  name: string,
  cpu: string,
  options: RequestOptions = {},
  more: Partial<PodSpec> = {},
): void {
  podTemplate(stage, name, podSpec(cpu, more))
  request(stage, name, options)
}

export function requestNow(stage: Stage, name: string): ProvisioningRequest | undefined {
  return stage.world.cluster.server.local.get(autoscalingKinds.provisioningRequest, 'default', name)
}

/** `Status/Reason` of a condition, or `absent`. */
export function stateOf(stage: Stage, name: string, type: string): string {
  const found = requestNow(stage, name)
  const condition = found && conditionOf(found, type)
  return condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
}

export function messageOf(stage: Stage, name: string, type: string): string {
  const found = requestNow(stage, name)
  return (found && conditionOf(found, type)?.message) ?? ''
}

/** Pods made for the room of a request, with the annotations that Kueue gives them. */
export function consumers(
  stage: Stage,
  name: string,
  count: number,
  {
    cpu = '2',
    from = 0,
    of = atomicClass,
    scheduler,
    keys = 'autoscaling.x-k8s.io',
  }: {
    readonly cpu?: string
    readonly from?: number
    readonly of?: string
    readonly scheduler?: string
    /** What the keys of the annotations begin with. */
    readonly keys?: string
  } = {},
): void {
  for (let at = from; at < from + count; at++)
    stage.world.create(kinds.pod, {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        name: `${name}-pod-${at}`,
        namespace: 'default',
        labels: { app: name },
        annotations: {
          [`${keys}/consume-provisioning-request`]: name,
          [`${keys}/provisioning-class-name`]: of,
        },
      },
      spec: podSpec(cpu, scheduler === undefined ? {} : { schedulerName: scheduler }),
    })
}
