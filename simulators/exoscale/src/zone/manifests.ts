/** Example node classes and NodePools, as YAML. */
import type { SksCluster } from './cloud-state.ts'

/** A NodePool named `standard`, as the API generates it. */
export function nodePoolManifest(): string {
  return nodePool({
    types: ['standard.small', 'standard.medium', 'standard.large', 'standard.extra-large'],
    consolidateAfter: '5m',
    rest: '  limits:\n    cpu: "100"\n',
  })
}

/** A node class for the cluster, named `standard`. */
export function nodeClassManifest(cluster: SksCluster): string {
  return nodeClass(`  imageTemplateSelector:
    version: "${cluster.version}"
    variant: standard
  diskSize: 50
  securityGroupSelectorTerms:
    - id: ${cluster.defaultSecurityGroupId}
`)
}

const demonstrationWorkload = `apiVersion: apps/v1
kind: Deployment
metadata:
  name: demo
  namespace: default
spec:
  replicas: 20
  selector:
    matchLabels:
      app: demo
  template:
    metadata:
      labels:
        app: demo
    spec:
      containers:
        - name: app
          image: registry.k8s.io/pause
          resources:
            requests:
              cpu: 500m
              memory: 512Mi
`

/** What `tenon up --mode cluster-autoscaler` applies: only the workload, as node groups exist already. */
export const nodeGroupDemonstration: string = demonstrationWorkload

/** What `tenon up` applies without a manifest: a node class, a pool and a small workload. */
export const demonstration: string = [
  nodeClass('  imageTemplateSelector: {}\n  diskSize: 50\n'),
  nodePool({
    types: ['standard.medium', 'standard.large', 'standard.extra-large', 'standard.huge'],
    consolidateAfter: '30s',
  }),
  demonstrationWorkload,
].join('---\n')

/** The node class of the guided demonstration. */
export const tourNodeClass: string = nodeClass(`  imageTemplateSelector: {}
  diskSize: 50
  securityGroupSelectorTerms:
    - name: sks-nodes
`)

/** The first NodePool of the demonstration. */
export const tourNodePool: string = nodePool({
  types: ['standard.medium', 'standard.large', 'standard.extra-large'],
  consolidateAfter: '3s',
  rest: '    budgets:\n      - nodes: 100%\n  limits:\n    cpu: 100\n',
})

/** The node class and NodePool for GPUs. */
export const tourGpuPool: string = `apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: gpu
spec:
  imageTemplateSelector:
    variant: nvidia
  diskSize: 100
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: gpu
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.exoscale.com
        kind: ExoscaleNodeClass
        name: gpu
      requirements:
        - key: exoscale.com/instance-family
          operator: In
          values: [gpua30, gpu3]
      taints:
        - key: nvidia.com/gpu
          value: "true"
          effect: NoSchedule
  disruption:
    consolidationPolicy: WhenEmpty
    consolidateAfter: 2s
    budgets:
      - nodes: 100%
`

function nodeClass(spec: string): string {
  return `apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: standard
spec:
${spec}`
}

interface Pool {
  readonly types: readonly string[]
  readonly consolidateAfter: string
  /** YAML that follows `consolidateAfter`. */
  readonly rest?: string
}

function nodePool({ types, consolidateAfter, rest = '' }: Pool): string {
  return `apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: standard
spec:
  template:
    spec:
      nodeClassRef:
        group: karpenter.exoscale.com
        kind: ExoscaleNodeClass
        name: standard
      requirements:
        - key: node.kubernetes.io/instance-type
          operator: In
          values: [${types.join(', ')}]
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: ${consolidateAfter}
${rest}`
}
