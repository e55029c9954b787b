/** Applies YAML as `kubectl apply` does, unknown fields refused. */
import { readText } from '@tenon/runtime'
import type { World } from '../world.ts'

interface Applied {
  readonly status: number
  /** Why it was refused; empty when it was not. */
  readonly message: string
}

const paths: Readonly<Record<string, string>> = {
  ExoscaleNodeClass: '/apis/karpenter.exoscale.com/v1/exoscalenodeclasses',
  NodePool: '/apis/karpenter.sh/v1/nodepools',
  NodeOverlay: '/apis/karpenter.sh/v1alpha1/nodeoverlays',
  CleverNodeClass: '/apis/karpenter.clever-cloud.com/v1alpha1/clevernodeclasses',
  DeviceClass: '/apis/resource.k8s.io/v1/deviceclasses',
  ResourceClaimTemplate: '/apis/resource.k8s.io/v1/namespaces/default/resourceclaimtemplates',
  PodGroup: '/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups',
  Job: '/apis/batch/v1/namespaces/default/jobs',
  Pod: '/api/v1/namespaces/default/pods',
  PodTemplate: '/api/v1/namespaces/default/podtemplates',
  CapacityBuffer: '/apis/autoscaling.x-k8s.io/v1beta1/namespaces/default/capacitybuffers',
  CapacityQuota: '/apis/autoscaling.x-k8s.io/v1beta1/capacityquotas',
  ClusterAPINodeClass: '/apis/karpenter.cluster.x-k8s.io/v1alpha1/clusterapinodeclasses',
  MachineDeployment: '/apis/cluster.x-k8s.io/v1beta2/namespaces/default/machinedeployments',
  Deployment: '/apis/apps/v1/namespaces/default/deployments',
  PodDisruptionBudget: '/apis/policy/v1/namespaces/default/poddisruptionbudgets',
}

/** Applies one document, in namespace `default`. */
export async function applyYaml(world: World, yaml: string): Promise<Applied> {
  const kind = /^kind: (\w+)$/m.exec(yaml)?.[1] ?? ''
  const name = /^metadata:\n(?: +#.*\n)* +name: (\S+)$/m.exec(yaml)?.[1] ?? ''
  const path = paths[kind]
  if (path === undefined) throw new Error(`no path known for kind "${kind}"`)
  const response = await world.kubeTransport().send({
    method: 'PATCH',
    path: `${path}/${name}?fieldManager=kubectl&fieldValidation=Strict`,
    headers: { 'content-type': 'application/apply-patch+yaml', accept: 'application/json' },
    body: yaml,
  })
  const body = JSON.parse(await readText(response.body)) as { readonly message?: string }
  return { status: response.status, message: response.status < 300 ? '' : (body.message ?? '') }
}
