/**
 * What kubeadm's providers of Cluster API need besides themselves: control planes, templates, and what kubeadm leaves
 * behind on the machines of a control plane. The components of the control plane run elsewhere: etcd is external, and
 * static pods only show what is expected of them.
 */
import { type KubeObject, kinds, type Pod, type ResourceType, type Secret } from '@tenon/api'
import { createCredentials } from '@tenon/devcluster'
import type { KubeClient } from '@tenon/kube'
import { stringify } from 'yaml'
import { ignoringGone, ignoringPresent } from './installation.ts'
import { kubeadmKinds, type Reference, referenceTo, type TestMachineTemplate, testKinds } from './kinds.ts'

const controlPlaneRole = 'node-role.kubernetes.io/control-plane'
const components = ['kube-apiserver', 'kube-controller-manager', 'kube-scheduler'] as const
/** Initialized and joined machines are told apart by it: kubeadm writes it at the end of `init`. */
const kubeadmConfig = { namespace: 'kube-system', name: 'kubeadm-config' } as const
const staticPods = { tier: 'control-plane' } as const
const pki = '/etc/kubernetes/pki'

/** A machine of a control plane. */
export const controlPlaneMachine: TestMachineTemplate['spec']['template']['spec'] = {
  capacity: { cpu: '2', memory: '4Gi', pods: '110', 'ephemeral-storage': '20Gi' },
  nodeLabels: { [controlPlaneRole]: '' },
  nodeTaints: [{ key: controlPlaneRole, effect: 'NoSchedule' }],
}

/** The fields that a KubeadmControlPlane and its template have in common. */
export const controlPlaneSpec = {
  kubeadmConfigSpec: {
    clusterConfiguration: {
      etcd: {
        external: {
          endpoints: ['https://127.0.0.1:2379'],
          caFile: `${pki}/etcd/ca.crt`,
          certFile: `${pki}/apiserver-etcd-client.crt`,
          keyFile: `${pki}/apiserver-etcd-client.key`,
        },
      },
    },
  },
  machineTemplate: {
    // Without it the controller would ask each static pod for its certificate, through a kubelet.
    metadata: { annotations: { 'machine.cluster.x-k8s.io/certificates-expiry': '2100-01-01T00:00:00Z' } },
  },
} as const

/** How a worker joins. */
export const workerSpec = {
  joinConfiguration: { nodeRegistration: { kubeletExtraArgs: [{ name: 'v', value: '2' }] } },
} as const

interface ControlPlaneParts {
  readonly name: string
  readonly version: string
  readonly nowMs: number
}

/**
 * Creates a KubeadmControlPlane of three Machines for the Cluster of this name, and a template of the same name for the
 * bootstrap data of its workers.
 */
export async function createControlPlane(client: KubeClient, parts: ControlPlaneParts): Promise<Reference> {
  const { name, version } = parts
  const machines = `${name}-control-plane`
  const create = (type: ResourceType, object: string, spec: object) => {
    const metadata = { namespace: name, name: object }
    const apiVersion = `${type.group}/${type.version}`
    const given: KubeObject & { readonly spec: object } = { apiVersion, kind: type.kind, metadata, spec }
    return client.create(type, given)
  }
  await createEtcdSecrets(client, parts)
  await create(testKinds.machineTemplate, machines, { template: { spec: controlPlaneMachine } })
  await create(kubeadmKinds.configTemplate, name, { template: { spec: workerSpec } })
  const spec = { infrastructureRef: referenceTo(testKinds.machineTemplate, machines) }
  await create(kubeadmKinds.controlPlane, name, {
    replicas: 3,
    version,
    ...controlPlaneSpec,
    machineTemplate: { ...controlPlaneSpec.machineTemplate, spec },
  })
  return referenceTo(kubeadmKinds.controlPlane, name)
}

/** Creates the certificates of a Cluster's etcd: of one that is external, no controller generates them. */
export async function createEtcdSecrets(
  client: KubeClient,
  { name, nowMs }: Omit<ControlPlaneParts, 'version'>,
): Promise<void> {
  const { certificateAuthority, admin } = await createCredentials(nowMs)
  const data = {
    etcd: { 'tls.crt': certificateAuthority.certificate },
    'apiserver-etcd-client': { 'tls.crt': admin.certificate, 'tls.key': admin.privateKey.reveal() },
  }
  for (const [purpose, stringData] of Object.entries(data)) {
    const labels = { 'cluster.x-k8s.io/cluster-name': name }
    const secret: Secret = {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { namespace: name, name: `${name}-${purpose}`, labels },
      type: 'cluster.x-k8s.io/secret',
      stringData,
    }
    await ignoringPresent(client.create(kinds.secret, secret))
  }
}

/** What `kubeadm init` leaves in the cluster once its API server responds. */
export async function initialize(workload: KubeClient, version: string): Promise<void> {
  const apiVersion = 'kubeadm.k8s.io/v1beta4'
  const configuration = { apiVersion, kind: 'ClusterConfiguration', kubernetesVersion: version }
  await ignoringPresent(
    workload.create(kinds.configMap, {
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: kubeadmConfig,
      data: { ClusterConfiguration: stringify(configuration) },
    }),
  )
}

/** Creates the mirror pods of a control plane's node. */
export async function runStaticPods(workload: KubeClient, nodeName: string): Promise<void> {
  const node = await workload.get(kinds.node, { name: nodeName })
  if (node === undefined) return
  const { name, uid = '' } = node.metadata
  for (const component of components) {
    const pod: Pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: {
        namespace: 'kube-system',
        name: `${component}-${name}`,
        labels: { ...staticPods, component },
        annotations: { 'kubernetes.io/config.mirror': component },
        ownerReferences: [{ apiVersion: 'v1', kind: 'Node', name, uid, controller: true }],
      },
      spec: {
        nodeName: name,
        hostNetwork: true,
        priorityClassName: 'system-node-critical',
        containers: [{ name: component, image: component }],
        tolerations: [{ operator: 'Exists' }],
      },
    }
    await ignoringPresent(workload.create(kinds.pod, pod))
  }
}

/** Removes what {@link initialize} and {@link runStaticPods} left. */
export async function uninitialize(workload: KubeClient): Promise<void> {
  await ignoringGone(workload.delete(kinds.configMap, kubeadmConfig))
  const { namespace } = kubeadmConfig
  const labelSelector = { matchLabels: staticPods }
  for (const { metadata } of await workload.list(kinds.pod, { namespace, labelSelector })) {
    const key = { namespace, name: metadata.name }
    await ignoringGone(workload.delete(kinds.pod, key, { gracePeriodSeconds: 0 }))
  }
}
