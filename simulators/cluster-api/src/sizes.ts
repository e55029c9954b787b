/** The example MachineDeployments: three sizes, each with its price (cluster-api.md 3, 6). */
import { apiVersionOf, labels } from '@tenon/api'
import type { LocalApi } from '@tenon/devcluster'
import { capacityAnnotations, defaultGroup, namesOf } from '@tenon/provider-cluster-api'
import { createUnlessThere } from './crds.ts'
import { type FullDeployment, type InfrastructureTemplate, simulatedKinds } from './kinds.ts'
import { workloadCluster } from './simulator.ts'

/** A machine size of the simulated infrastructure. */
export interface Size {
  readonly name: string
  readonly cpu: number
  readonly memory: string
  /** Per hour. */
  readonly price: number
}

/** Cheapest first. */
export const sizes: readonly Size[] = [
  { name: 'small', cpu: 4, memory: '8Gi', price: 0.05 },
  { name: 'medium', cpu: 8, memory: '16Gi', price: 0.098 },
  { name: 'large', cpu: 16, memory: '32Gi', price: 0.19 },
]

/** Maximum Machines of one MachineDeployment. */
const mostReplicas = 12

const served = simulatedKinds(defaultGroup, 'v1beta2')

/** Price of an instance type per hour; undefined for an unknown type. */
export const pricePerHour = (instanceType: string): number | undefined =>
  sizes.find(({ name }) => name === instanceType)?.price

/** The infrastructure template of a size. */
export function templateOf({ name, cpu, memory }: Size): InfrastructureTemplate {
  const capacity = { cpu: String(cpu), memory, 'ephemeral-storage': '50Gi', pods: '110' }
  return {
    apiVersion: apiVersionOf(served.template),
    kind: served.template.kind,
    metadata: { name, namespace: workloadCluster.namespace },
    spec: { template: { spec: { capacity } } },
  }
}

/** The MachineDeployment of a size: a member without Machines. */
export function deploymentOf({ name, price }: Size): FullDeployment {
  const { member, maxSize, minSize, price: priceKey } = namesOf(defaultGroup)
  const nodeLabels = [
    `${labels.instanceType}=${name}`,
    `${labels.zone}=a`,
    `${labels.capacityType}=on-demand`,
  ]
  const clusterName = workloadCluster.name
  const infrastructureRef = { apiGroup: served.template.group, kind: served.template.kind, name }
  return {
    apiVersion: apiVersionOf(served.deployment),
    kind: served.deployment.kind,
    metadata: {
      name,
      namespace: workloadCluster.namespace,
      labels: { [member]: '' },
      annotations: {
        [minSize]: '0',
        [maxSize]: String(mostReplicas),
        [priceKey]: String(price),
        [capacityAnnotations.labels]: nodeLabels.join(','),
      },
    },
    // Replicas start at the minimum size. If they were set here, applying the object again would reset them.
    spec: { clusterName, template: { spec: { clusterName, infrastructureRef } } },
  }
}

/** A MachineDeployment that the Cluster Autoscaler mode scales. */
interface Group {
  readonly name: string
  readonly size: Size
  readonly replicas: number
  /** Maximum number of Machines. */
  readonly most: number
  /** Whether the MachineDeployment states its capacity; otherwise its infrastructure template does. */
  readonly isAnnotated?: true
}

/** Creates the MachineDeployments of the Cluster Autoscaler mode, with their templates, unless they exist. */
export function installGroups(hub: LocalApi): void {
  const [small, medium, large] = sizes
  if (small === undefined || medium === undefined || large === undefined) return
  const groups: readonly Group[] = [
    { name: 'workers', size: small, replicas: 1, most: 6 },
    { name: 'batch', size: medium, replicas: 0, most: 4 },
    { name: 'reserve', size: large, replicas: 0, most: 2, isAnnotated: true },
  ]
  for (const group of groups) {
    createUnlessThere(hub, served.template, groupTemplateOf(group))
    createUnlessThere(hub, served.deployment, groupOf(group))
  }
}

function groupTemplateOf({ name, size, isAnnotated }: Group): InfrastructureTemplate {
  const { metadata, spec, ...template } = templateOf(size)
  // A template without capacity reports none.
  const shape = { ...(isAnnotated ? {} : spec?.template?.spec), registersUnregistered: false }
  return { ...template, metadata: { ...metadata, name }, spec: { template: { spec: shape } } }
}

function groupOf({ name, size, replicas, most, isAnnotated }: Group): FullDeployment {
  const { metadata: _, spec, ...deployment } = deploymentOf({ ...size, name })
  const { minSize, maxSize } = namesOf(defaultGroup)
  return {
    ...deployment,
    metadata: {
      name,
      namespace: workloadCluster.namespace,
      annotations: {
        [minSize]: String(replicas),
        [maxSize]: String(most),
        [capacityAnnotations.labels]: `${labels.instanceType}=${size.name},${labels.zone}=a`,
        ...(isAnnotated && {
          [capacityAnnotations.cpu]: String(size.cpu),
          [capacityAnnotations.memory]: size.memory,
        }),
      },
    },
    spec: { ...spec, replicas },
  }
}

/** Creates templates and MachineDeployments of all sizes unless they exist. */
export function installSizes(hub: LocalApi): void {
  for (const size of sizes) {
    createUnlessThere(hub, served.template, templateOf(size))
    createUnlessThere(hub, served.deployment, deploymentOf(size))
  }
}
