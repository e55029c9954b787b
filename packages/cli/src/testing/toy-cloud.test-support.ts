/** A node class and a NodePool of {@link toyCloud}, and a pod. */
export const toyManifests = `
apiVersion: toy.example.com/v1
kind: ToyNodeClass
metadata: {name: default}
spec: {}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: toys}
spec:
  template:
    spec:
      nodeClassRef: {group: toy.example.com, kind: ToyNodeClass, name: default}
      requirements:
        - {key: toy.example.com/colour, operator: In, values: [red]}
---
apiVersion: v1
kind: Pod
metadata: {name: app, namespace: default}
spec:
  containers: [{name: app, image: registry.k8s.io/pause, resources: {requests: {cpu: "2"}}}]
`

/** A cloud of a few lines, as somebody outside this repository would write it: its instances are Node objects. */
export const toyCloud = `
const nodeClass = { group: 'toy.example.com', version: 'v1', kind: 'ToyNodeClass', plural: 'toynodeclasses', namespaced: false }
const node = { group: '', version: 'v1', kind: 'Node', plural: 'nodes', namespaced: false }
const only = (key, value) => ({ key, operator: 'In', values: [value] })

function catalogue(cpus) {
  return [{
    name: 'toy.' + cpus,
    requirements: [
      only('node.kubernetes.io/instance-type', 'toy.' + cpus),
      only('kubernetes.io/arch', 'amd64'),
      only('kubernetes.io/os', 'linux'),
      only('toy.example.com/colour', 'red'),
    ],
    capacity: { cpu: cpus * 1000, memory: 8 * 2 ** 30, pods: 110 },
    overhead: { kubeReserved: {}, systemReserved: {}, evictionThreshold: {} },
    offerings: [{
      requirements: [only('karpenter.sh/capacity-type', 'on-demand'), only('topology.kubernetes.io/zone', 'toy-1')],
      pricePerHour: 0.1,
      available: true,
    }],
  }]
}

class ToyProvider {
  name = 'toy'
  nodeClasses = [nodeClass]
  wellKnownLabels = ['toy.example.com/colour']
  repairPolicies = []
  #kube
  #types
  constructor({ kubernetes, env }) {
    this.#kube = kubernetes.client
    this.#types = catalogue(Number(env.TOY_CPUS))
  }
  ownsProviderID(id) {
    return id.startsWith('toy://')
  }
  async create(claim) {
    const name = 'toy-' + claim.metadata.name
    const found = (await this.list()).find((each) => each.nodeClaimName === claim.metadata.name)
    if (found !== undefined) return found
    const [{ name: type, capacity }] = this.#types
    const amounts = { cpu: String(capacity.cpu / 1000), memory: '8Gi', pods: '110' }
    await this.#kube.create(node, {
      apiVersion: 'v1',
      kind: 'Node',
      metadata: {
        name,
        labels: {
          'node.kubernetes.io/instance-type': type,
          'topology.kubernetes.io/zone': 'toy-1',
          'kubernetes.io/hostname': name,
          'kubernetes.io/arch': 'amd64',
          'kubernetes.io/os': 'linux',
          'karpenter.sh/capacity-type': 'on-demand',
          'toy.example.com/colour': 'red',
        },
        annotations: { 'toy.example.com/claim': claim.metadata.name },
      },
      spec: {
        providerID: 'toy://' + name,
        taints: [{ key: 'karpenter.sh/unregistered', effect: 'NoExecute' }],
      },
      status: {
        capacity: amounts,
        allocatable: amounts,
        conditions: [{ type: 'Ready', status: 'True', reason: 'KubeletReady', message: 'toy' }],
      },
    })
    return await this.get('toy://' + name)
  }
  async delete(claim) {
    const { providerID } = claim.status
    await this.get(providerID)
    await this.#kube.delete(node, { name: providerID.slice('toy://'.length) })
  }
  async get(providerID) {
    const found = (await this.list()).find((each) => each.providerID === providerID)
    if (found === undefined) throw new ToyError('nodeClaimNotFound', providerID + ' does not exist')
    return found
  }
  async list() {
    const nodes = await this.#kube.list(node)
    return nodes
      // An instance ends when its Node is deleted, though finalizers may still hold that.
      .filter(({ metadata }) => metadata.deletionTimestamp === undefined)
      .filter(({ spec }) => spec.providerID?.startsWith('toy://'))
      .map(({ metadata, spec, status }) => ({
        providerID: spec.providerID,
        labels: metadata.labels,
        capacity: status.capacity,
        allocatable: status.allocatable,
        nodeClaimName: metadata.annotations['toy.example.com/claim'],
        deleting: false,
      }))
  }
  async getInstanceTypes() {
    return this.#types
  }
  async isDrifted() {
    return undefined
  }
  startControllers() {}
}

/** It brings its own copy of the error, as an installed package does. */
class ToyError extends Error {
  name = 'ProviderError'
  offerings = []
  constructor(kind, message) {
    super(message)
    this.kind = kind
    this.detail = message
  }
}

export const provider = {
  name: 'toy',
  title: 'Toy Cloud',
  nodeClasses: [nodeClass],
  options: [{ flag: 'toy-cpus', variable: 'TOY_CPUS', kind: 'integer', fallback: '4', takes: 'NUMBER', meaning: 'Cores of every instance.' }],
  validateOptions: [],
  formerNodeClasses: { 'toy.example.com/v1alpha1 ToyNodeClass': 'write apiVersion toy.example.com/v1' },
  crds: async () => [{
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: 'toynodeclasses.toy.example.com' },
    spec: {
      group: 'toy.example.com',
      scope: 'Cluster',
      names: { kind: 'ToyNodeClass', plural: 'toynodeclasses', singular: 'toynodeclass', listKind: 'ToyNodeClassList' },
      versions: [{
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object' },
              // Ready without a controller of its own.
              status: {
                type: 'object',
                'x-kubernetes-preserve-unknown-fields': true,
                default: { conditions: [{ type: 'Ready', status: 'True', reason: 'Ready', message: '', lastTransitionTime: '2026-01-01T00:00:00Z' }] },
              },
            },
          },
        },
      }],
    },
  }],
  open: async (dependencies) => new ToyProvider(dependencies),
  offline: async () => {
    const types = catalogue(4)
    return {
      rules: { wellKnownLabels: ['toy.example.com/colour'] },
      typesOf: () => ({ offered: types, known: types }),
      findingsOf: () => [],
      problems: [],
    }
  },
  simulator: async () => ({
    cloud: () => ({ prepare: () => undefined, start: (parts) => new ToySimulator(parts) }),
    settings: () => ({}),
    demonstration: \`${toyManifests}\`,
  }),
}

/** Plays a kubelet for every Node of the toy cloud. */
class ToySimulator {
  #kubelets = new Map()
  #unsubscribe
  constructor({ api, nodes }) {
    this.#unsubscribe = api.as('toy').subscribe(node, {
      added: ({ metadata, spec, status }) => {
        if (!spec.providerID?.startsWith('toy://')) return
        const { capacity, allocatable } = status
        this.#kubelets.set(metadata.name, nodes.kubelets.start({
          nodeName: metadata.name,
          providerId: spec.providerID,
          labels: metadata.labels,
          taints: [],
          capacity,
          allocatable,
          addresses: [],
          kubeletVersion: 'v1.34.1',
          systemUuid: metadata.name,
        }))
      },
      deleted: ({ metadata }) => {
        this.#kubelets.get(metadata.name)?.stop()
        this.#kubelets.delete(metadata.name)
      },
    })
  }
  instances() {
    return [...this.#kubelets.keys()].map((name) => ({ name, pricePerHour: 0.1 }))
  }
  stop() {
    this.#unsubscribe()
  }
}
`
