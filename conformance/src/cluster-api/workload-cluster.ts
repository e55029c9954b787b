/** A Cluster in the management cluster, with everything it refers to. */
import { readFileSync } from 'node:fs'
import { KubeConfig } from '@kubernetes/client-node'
import { type KubeObject, kinds, type ResourceType, type Secret } from '@tenon/api'
import type { KubeClient } from '@tenon/kube'
import { ignoringPresent } from './installation.ts'
import {
  type Cluster,
  capiKinds,
  kubeadmKinds,
  type Reference,
  referenceTo,
  type TestMachineTemplate,
  testKinds,
} from './kinds.ts'
import {
  controlPlaneMachine,
  controlPlaneSpec,
  createControlPlane,
  createEtcdSecrets,
  workerSpec,
} from './kubeadm.ts'

/** The Secret with the bootstrap data of Machines that no bootstrap provider serves. */
export const bootstrapSecret = 'bootstrap'

/** Creates the namespace of a Cluster of this name, and the Secrets that it and its Machines need. */
async function createSecrets(client: KubeClient, name: string, kubeconfigPath: string): Promise<void> {
  await ignoringPresent(
    client.create(kinds.namespace, { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }),
  )
  const cluster = { 'cluster.x-k8s.io/cluster-name': name }
  const kubeconfig = readFileSync(kubeconfigPath, 'utf8')
  for (const [secret, value] of [
    [bootstrapSecret, '#!/bin/sh'],
    [`${name}-kubeconfig`, kubeconfig],
  ] as const) {
    const object: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name: secret, namespace: name, labels: cluster },
      // As a user's own: a KubeadmControlPlane takes one of Cluster API's type for its own and renews it.
      type: 'Opaque',
      stringData: { value },
    }
    await ignoringPresent(client.create(kinds.secret, object))
  }
}

export interface ClusterParts {
  /** Of the Cluster and its namespace. */
  readonly name: string
  readonly version: string
  /** Whether kubeadm's providers make its control plane and its bootstrap data; otherwise both exist already. */
  readonly isKubeadm: boolean
  /** How to reach the cluster. */
  readonly kubeconfigPath: string
  readonly nowMs: number
}

/** Creates a Cluster whose infrastructure exists already, and its namespace. */
export async function createCluster(client: KubeClient, parts: ClusterParts): Promise<void> {
  const { name, kubeconfigPath } = parts
  await createSecrets(client, name, kubeconfigPath)
  const metadata = { name, namespace: name }
  const controlPlaneEndpoint = endpointOf(kubeconfigPath)
  await createWithStatus(client, testKinds.cluster, {
    metadata,
    spec: { controlPlaneEndpoint },
    status: { initialization: { provisioned: true } },
  })
  const controlPlaneRef = parts.isKubeadm
    ? await createControlPlane(client, parts)
    : await createManagedControlPlane(client, name)
  const object: Cluster = {
    apiVersion: 'cluster.x-k8s.io/v1beta2',
    kind: 'Cluster',
    metadata,
    spec: {
      controlPlaneEndpoint,
      infrastructureRef: referenceTo(testKinds.cluster, name),
      controlPlaneRef,
    },
  }
  await client.create(capiKinds.cluster, object)
}

async function createManagedControlPlane(client: KubeClient, name: string): Promise<Reference> {
  await createWithStatus(client, testKinds.controlPlane, {
    metadata: { name, namespace: name },
    spec: {},
    status: { initialization: { controlPlaneInitialized: true }, externalManagedControlPlane: true },
  })
  return referenceTo(testKinds.controlPlane, name)
}

export interface TopologyParts extends ClusterParts {
  readonly annotations: Readonly<Record<string, string>>
  readonly machine: TestMachineTemplate['spec']['template']['spec']
}

/**
 * Creates a Cluster of a ClusterClass, with one MachineDeployment whose replicas the topology leaves to others; all
 * have the same name.
 */
export async function createTopology(client: KubeClient, parts: TopologyParts): Promise<void> {
  const { name, version, isKubeadm, annotations, machine, kubeconfigPath } = parts
  await createSecrets(client, name, kubeconfigPath)
  const metadata = { name, namespace: name }
  const reference = async (type: ResourceType, spec: object, of = name) => {
    const apiVersion = `${type.group}/${type.version}`
    const object: KubeObject & { readonly spec: object } = {
      apiVersion,
      kind: type.kind,
      metadata: { ...metadata, name: of },
      spec: { template: { spec } },
    }
    await client.create(type, object)
    return { templateRef: { apiVersion, kind: type.kind, name: of } }
  }
  const infrastructure = await reference(testKinds.clusterTemplate, {
    controlPlaneEndpoint: endpointOf(kubeconfigPath),
  })
  if (isKubeadm) await createEtcdSecrets(client, parts)
  const controlPlane = isKubeadm
    ? {
        ...(await reference(kubeadmKinds.controlPlaneTemplate, controlPlaneSpec)),
        machineInfrastructure: await reference(
          testKinds.machineTemplate,
          controlPlaneMachine,
          `${name}-control-plane`,
        ),
      }
    : await reference(testKinds.controlPlaneTemplate, {})
  const bootstrap = isKubeadm
    ? await reference(kubeadmKinds.configTemplate, workerSpec)
    : await reference(testKinds.bootstrapTemplate, {})
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
    ...(isKubeadm && { controlPlane: { replicas: 1 } }),
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
