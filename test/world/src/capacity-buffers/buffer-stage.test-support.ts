/** A stage with real kubelets and scheduler, nodes of 4 and of 8 cores, and verbs about CapacityBuffers. */
import type { TestContext } from 'node:test'
import {
  autoscalingKinds,
  type CapacityBuffer,
  conditionOf,
  kinds,
  type NodePool,
  type PodSpec,
  type PodTemplate,
} from '@tenon/api'
import type { Stage } from '../testing/stage.test-support.ts'
import { catalogueOf, openKwok } from '../testing/kwok-stage.test-support.ts'
import { deploymentKind, type WorldOptions } from '../world.ts'

const zone = 'zone-a'

function typeOf(name: string, cpu: number, price: number): object {
  const offering = {
    Price: price,
    Available: true,
    Requirements: [
      { key: 'karpenter.sh/capacity-type', operator: 'In', values: ['on-demand'] },
      { key: 'topology.kubernetes.io/zone', operator: 'In', values: [zone] },
    ],
  }
  return {
    name,
    offerings: [offering],
    architecture: 'amd64',
    operatingSystems: ['linux'],
    resources: { cpu: String(cpu), memory: `${2 * cpu}Gi`, 'ephemeral-storage': '20Gi', pods: '110' },
  }
}

export const small = 'small.4'
export const large = 'large.8'

/** Opens a stage whose nodes come and go; nothing is launched yet. */
export async function openBuffers(
  t: Pick<TestContext, 'after'>,
  pool: Partial<NodePool['spec']> = {},
  options: Partial<WorldOptions> = {},
): Promise<Stage> {
  const instanceTypes = catalogueOf([typeOf(small, 4, 0.1), typeOf(large, 8, 0.19)])
  return await openKwok(t as TestContext, {
    kwok: { instanceTypes },
    pool: { disruption: { consolidateAfter: '30s', budgets: [{ nodes: '100%' }] }, ...pool },
    ...options,
  })
}

/** A pod of so many cores, and what is given. */
export function podSpec(cpu = '1', more: Partial<PodSpec> = {}): PodSpec {
  return {
    containers: [
      { name: 'app', image: 'registry.k8s.io/pause', resources: { requests: { cpu, memory: '512Mi' } } },
    ],
    ...more,
  }
}

export function podTemplate(
  stage: Stage,
  name: string,
  spec: PodSpec = podSpec(),
  namespace = 'default',
): void {
  const template: PodTemplate = {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name, namespace },
    template: { metadata: { labels: { app: name } }, spec },
  }
  stage.world.create(kinds.podTemplate, template)
}

export function buffer(
  stage: Stage,
  name: string,
  spec: CapacityBuffer['spec'],
  namespace = 'default',
): void {
  stage.world.create(autoscalingKinds.capacityBuffer, {
    apiVersion: 'autoscaling.x-k8s.io/v1beta1',
    kind: 'CapacityBuffer',
    metadata: { name, namespace },
    spec,
  })
}

/** A PodTemplate of one-core pods, and a buffer of so many of them, both of this name. */
export function templated(stage: Stage, name: string, replicas: number, spec: PodSpec = podSpec()): void {
  podTemplate(stage, name, spec)
  buffer(stage, name, { podTemplateRef: { name }, replicas })
}

export function bufferNow(stage: Stage, name: string, namespace = 'default'): CapacityBuffer | undefined {
  return stage.world.cluster.server.local.get(autoscalingKinds.capacityBuffer, namespace, name)
}

/** `Status/Reason` of a condition, or `absent`. */
export function stateOf(stage: Stage, name: string, type: 'ReadyForProvisioning' | 'Provisioning'): string {
  const found = bufferNow(stage, name)
  const condition = found && conditionOf(found, type)
  return condition === undefined ? 'absent' : `${condition.status}/${condition.reason}`
}

export function messageOf(stage: Stage, name: string, type: 'ReadyForProvisioning' | 'Provisioning'): string {
  const found = bufferNow(stage, name)
  return (found && conditionOf(found, type)?.message) ?? ''
}

export function changeBuffer(stage: Stage, name: string, spec: object): void {
  stage.patch(autoscalingKinds.capacityBuffer, name, { spec }, undefined, 'default')
}

export function deleteBuffer(stage: Stage, name: string): void {
  stage.world.cluster.server.local.delete(autoscalingKinds.capacityBuffer, 'default', name)
}

/** A Deployment of so many pods. */
export function deployment(stage: Stage, name: string, replicas: number, spec: PodSpec = podSpec()): void {
  stage.world.create(deploymentKind, {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace: 'default' },
    spec: {
      replicas,
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec },
    },
  } as never)
}

/** Pods that have a node. */
export function bound(stage: Stage, app: string): number {
  return stage.world
    .pods()
    .filter(({ metadata, spec }) => metadata.labels?.['app'] === app && (spec.nodeName ?? '') !== '').length
}
