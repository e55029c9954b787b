/** The manifests of Exoscale's announcement of Karpenter for SKS, with the indentation its page has lost. */
export const blogNodeClass = `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: standard
spec:
  imageTemplateSelector:
    version: "1.34.1"
    variant: "standard"
  diskSize: 100
  securityGroups:
    - "<setme>"
  antiAffinityGroups: []
  privateNetworks: []
`

export const blogNodePool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata:
  name: standard
spec:
  template:
    metadata:
      labels:
        nodepool: standard
    spec:
      nodeClassRef:
        group: karpenter.exoscale.com
        kind: ExoscaleNodeClass
        name: standard
      startupTaints:
        - key: karpenter.sh/unregistered
          effect: NoExecute
      requirements:
        - key: "node.kubernetes.io/instance-type"
          operator: In
          values:
            - "standard.medium"
            - "standard.large"
            - "standard.extra-large"
      expireAfter: 30m
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 30m
    budgets:
      - nodes: "10%"
  weight: 50
  limits:
    cpu: 1000
    memory: 4000Gi
`
