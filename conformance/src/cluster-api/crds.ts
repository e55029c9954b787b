/** The kinds of the tests' own infrastructure provider, according to Cluster API's contracts. */
import type { KubeObject } from '@tenon/api'
import { infrastructureGroup, testKinds } from './kinds.ts'

/** Which version of a kind follows which contract; Cluster API's controllers read it from the CRD. */
const contracts = { 'cluster.x-k8s.io/v1beta1': 'v1alpha1', 'cluster.x-k8s.io/v1beta2': 'v1alpha1' }

const text = { type: 'string' }
const yes = { type: 'boolean' }
const object = (properties: object) => ({ type: 'object', properties })
const listOf = (items: object) => ({ type: 'array', items })
const texts = { type: 'object', additionalProperties: text }
const quantities = {
  type: 'object',
  additionalProperties: {
    anyOf: [{ type: 'integer' }, text],
    'x-kubernetes-int-or-string': true,
  },
}
const conditions = listOf(
  object({
    type: text,
    status: text,
    reason: text,
    message: text,
    lastTransitionTime: { ...text, format: 'date-time' },
  }),
)
const endpoint = object({ host: text, port: { type: 'integer' } })

const machineSpec = object({
  providerID: { ...text, minLength: 1, maxLength: 512 },
  capacity: quantities,
  nodeLabels: texts,
  nodeTaints: listOf(object({ key: text, value: text, effect: text })),
})

const addresses = listOf(object({ type: text, address: text }))

const machine = {
  spec: machineSpec,
  status: object({ initialization: object({ provisioned: yes }), addresses, conditions }),
}

const machineTemplate = {
  spec: object({
    template: object({ metadata: object({ labels: texts, annotations: texts }), spec: machineSpec }),
  }),
  status: object({
    capacity: quantities,
    nodeInfo: object({
      architecture: { ...text, enum: ['amd64', 'arm64', 's390x', 'ppc64le'] },
      operatingSystem: text,
    }),
  }),
}

const clusterSpec = object({ controlPlaneEndpoint: endpoint })

const cluster = {
  spec: clusterSpec,
  status: object({ initialization: object({ provisioned: yes }), conditions }),
}

/** A control plane that exists already, such as a managed one. */
const controlPlane = {
  spec: object({ version: text }),
  status: object({
    version: text,
    initialization: object({ controlPlaneInitialized: yes }),
    externalManagedControlPlane: yes,
    conditions,
  }),
}

const bootstrap = {
  spec: object({}),
  status: object({
    dataSecretName: text,
    initialization: object({ dataSecretCreated: yes }),
    conditions,
  }),
}

/** What a ClusterClass clones objects from. */
const templateOf = (spec: object) => ({
  spec: object({ template: object({ metadata: object({ labels: texts, annotations: texts }), spec }) }),
})

export const infrastructureCrds: readonly KubeObject[] = [
  crd(testKinds.machine.kind, machine),
  crd(testKinds.machineTemplate.kind, machineTemplate),
  crd(testKinds.cluster.kind, cluster),
  crd(testKinds.clusterTemplate.kind, templateOf(clusterSpec)),
  crd(testKinds.controlPlane.kind, controlPlane),
  crd(testKinds.controlPlaneTemplate.kind, templateOf(controlPlane.spec)),
  crd(testKinds.bootstrap.kind, bootstrap),
  crd(testKinds.bootstrapTemplate.kind, templateOf(bootstrap.spec)),
]

function crd(kind: string, properties: object): KubeObject & { readonly spec: object } {
  const singular = kind.toLowerCase()
  const plural = `${singular}s`
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${infrastructureGroup}`, labels: contracts },
    spec: {
      group: infrastructureGroup,
      names: { kind, listKind: `${kind}List`, plural, singular },
      scope: 'Namespaced',
      versions: [
        {
          name: 'v1alpha1',
          served: true,
          storage: true,
          subresources: { status: {} },
          schema: { openAPIV3Schema: object({ metadata: { type: 'object' }, ...properties }) },
        },
      ],
    },
  }
}
