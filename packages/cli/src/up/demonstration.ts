/** What `tenon up` applies when no manifest is given: a node class, a pool and a small workload. */
export const demonstration = `
apiVersion: karpenter.exoscale.com/v1
kind: ExoscaleNodeClass
metadata:
  name: standard
spec:
  imageTemplateSelector: {}
  diskSize: 50
---
apiVersion: karpenter.sh/v1
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
          values: [standard.medium, standard.large, standard.extra-large, standard.huge]
  disruption:
    consolidationPolicy: WhenEmptyOrUnderutilized
    consolidateAfter: 30s
---
apiVersion: apps/v1
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
