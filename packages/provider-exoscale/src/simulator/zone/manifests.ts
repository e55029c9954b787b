import type { SksCluster } from './cloud-state.ts'

/** A NodePool to begin with, as YAML. */
export function nodePoolManifest(): string {
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
          values: ["standard.small", "standard.medium", "standard.large", "standard.extra-large"]
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 5m
  limits:
    cpu: "100"
`
}

/** A node class that fits the cluster, as YAML. */
export function nodeClassManifest(cluster: SksCluster): string {
  return `apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: standard
spec:
  imageTemplateSelector:
    version: "${cluster.version}"
    variant: standard
  diskSize: 50
  securityGroupSelectorTerms:
    - id: ${cluster.defaultSecurityGroupId}
`
}
