/** A Cluster in the management cluster, with everything it refers to. */
import { readFileSync } from 'node:fs'
import { KubeConfig } from '@kubernetes/client-node'
import { type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { isKubeError, type KubeClient } from '@tenon/kube'
import { type Cluster, capiKinds, ownReference, type TestMachineTemplate, testKinds } from './kinds.ts'

/** The Secret with the bootstrap data of Machines; it exists already, so that no bootstrap provider is needed. */
export const bootstrapSecret = 'bootstrap'

/** Creates the namespace of a Cluster of this name, and the Secrets that it and its Machines need. */
async function createSecrets(client: KubeClient, name: string, kubeconfigPath: string): Promise<void> {
  await client
    .create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    .catch((error: unknown) => {
      if (!isKubeError(error, 'alreadyExists')) throw error
    })
  const cluster = { 'cluster.x-k8s.io/cluster-name': name }
  const kubeconfig = readFileSync(kubeconfigPath, 'utf8')
  for (const [secret, value] of [
    [bootstrapSecret, '#!/bin/sh'],
    [`${name}-kubeconfig`, kubeconfig],
  ] as const) {
    const object: KubeObject & { readonly type: string; readonly stringData: object } = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret, namespace: name, labels: cluster },
      type: 'cluster.x-k8s.io/secret',
      stringData: { value },
    }
    await client.create(kinds.secret as ResourceType, object).catch((error: unknown) => {
      if (!isKubeError(error, 'alreadyExists')) throw error
    })
  }
}

/**
 * Creates a Cluster whose infrastructure and control plane exist already, and its namespace; both have this
 * name.
 * @param kubeconfigPath how to reach the cluster.
 */
export async function createCluster(client: KubeClient, name: string, kubeconfigPath: string): Promise<void> {
  await createSecrets(client, name, kubeconfigPath)
  const metadata = { name, namespace: name }
  const controlPlaneEndpoint = endpointOf(kubeconfigPath)
  await createWithStatus(client, testKinds.cluster, {
    metadata,
    spec: { controlPlaneEndpoint },
    status: { initialization: { provisioned: true } },
  })
  await createWithStatus(client, testKinds.controlPlane, {
    metadata,
    spec: {},
    status: { initialization: { controlPlaneInitialized: true }, externalManagedControlPlane: true },
  })
  const object: Cluster = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata,
    spec: {
      controlPlaneEndpoint,
      infrastructureRef: ownReference(testKinds.cluster.kind, name),
      controlPlaneRef: ownReference(testKinds.controlPlane.kind, name),
    },
  }
  await client.create(capiKinds.cluster, object)
}

export interface TopologyParts {
  /** Of the Cluster, its namespace, its ClusterClass and its MachineDeployment. */
  readonly name: string
  readonly version: string
  readonly annotations: Readonly<Record<string, string>>
  readonly machine: TestMachineTemplate['spec']['template']['spec']
}

/** Creates a Cluster of a ClusterClass, with one MachineDeployment whose replicas the topology leaves to others. */
export async function createTopology(
  client: KubeClient,
  { name, version, annotations, machine }: TopologyParts,
  kubeconfigPath: string,
): Promise<void> {
  await createSecrets(client, name, kubeconfigPath)
  const metadata = { name, namespace: name }
  const reference = async (type: ResourceType, spec: object) => {
    const apiVersion = `${type.group}/${type.version}`
    const object: KubeObject & { readonly spec: object } = {
      apiVersion,
      kind: type.kind,
      metadata,
      spec: { template: { spec } },
    }
    await client.create(type, object)
    return { templateRef: { apiVersion, kind: type.kind, name } }
  }
  const infrastructure = await reference(testKinds.clusterTemplate, {
    controlPlaneEndpoint: endpointOf(kubeconfigPath),
  })
  const controlPlane = await reference(testKinds.controlPlaneTemplate, {})
  const bootstrap = await reference(testKinds.bootstrapTemplate, {})
  const machines = await reference(testKinds.machineTemplate, machine)
  const workers = [
    { class: 'workers', bootstrap, infrastructure: machines, naming: { template: '{{ .cluster.name }}' } },
  ]
  const spec = { infrastructure, controlPlane, workers: { machineDeployments: workers } }
  const apiVersion = 'cluster.x-k8s.io/v1beta2'
  const clusterClass: KubeObject & { readonly spec: object } = {
    apiVersion,
    kind: 'ClusterClass',
    metadata,
    spec,
  }
  await client.create(capiKinds.clusterClass, clusterClass)
  const topology = {
    classRef: { name },
    version,
    workers: { machineDeployments: [{ class: 'workers', name, metadata: { annotations } }] },
  }
  await client.create(capiKinds.cluster, { apiVersion, kind: 'Cluster', metadata, spec: { topology } })
}

/** Whether the controllers of Cluster API consider its control plane ready and are connected to it. */
export async function isReached(client: KubeClient, name: string): Promise<boolean> {
  const { status } = (await client.get(capiKinds.cluster, { namespace: name, name })) ?? {}
  const isTrue = (type: string) =>
    status?.conditions?.some((each) => each.type === type && each.status === 'True') === true
  return isTrue('RemoteConnectionProbe') && isTrue('ControlPlaneInitialized')
}

interface Parts {
  readonly metadata: KubeObject['metadata']
  readonly spec: object
  readonly status: object
}

/** Does what the infrastructure's own controller would; the kind has a status subresource. */
export async function createWithStatus(client: KubeClient, type: ResourceType, parts: Parts): Promise<void> {
  const { metadata, spec, status } = parts
  const object: KubeObject & { readonly spec: object } = {
    apiVersion: `${type.group}/${type.version}`,
    kind: type.kind,
    metadata,
    spec,
  }
  await client.create(type, object)
  const { namespace = '', name } = metadata
  await client.patch(type, { namespace, name }, { status }, { subresource: 'status' })
}

function endpointOf(kubeconfigPath: string): { readonly host: string; readonly port: number } {
  const config = new KubeConfig()
  config.loadFromFile(kubeconfigPath)
  const { hostname, port } = new URL(config.getCurrentCluster()?.server ?? '')
  return { host: hostname, port: Number(port) }
}
