/** CRDs as the simulated hub serves them (cluster-api.md 18). */
import { type KubeObject, kinds, type ResourceType } from '@tenon/api'
import { ApiError, type LocalApi } from '@tenon/devcluster'
import type { SimulatedKinds } from './kinds.ts'

const crdKind: ResourceType = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  kind: 'CustomResourceDefinition',
  plural: 'customresourcedefinitions',
  namespaced: false,
}

/** Any field is kept, as Cluster API validates with webhooks. */
const anything = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } as const

const column = (name: string, type: string, jsonPath: string) => ({ name, type, jsonPath })
const age = column('Age', 'date', '.metadata.creationTimestamp')
const replicas = [
  column('Cluster', 'string', '.spec.clusterName'),
  column('Desired', 'integer', '.spec.replicas'),
  column('Current', 'integer', '.status.replicas'),
  column('Ready', 'integer', '.status.readyReplicas'),
]
const scale = {
  specReplicasPath: '.spec.replicas',
  statusReplicasPath: '.status.replicas',
  labelSelectorPath: '.status.selector',
}
const whole = { type: 'integer', format: 'int32', minimum: 0 }

interface Served {
  readonly type: ResourceType
  readonly shortName: string
  readonly columns: readonly object[]
  readonly spec?: object
  readonly hasScale?: boolean
}

function definition({ type, shortName, columns, spec = {}, hasScale = false }: Served): object {
  const { group, kind, plural, version } = type
  return {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    // By this label controllers find the version of a contract.
    metadata: { name: `${plural}.${group}`, labels: { [`cluster.x-k8s.io/${version}`]: version } },
    spec: {
      group,
      scope: 'Namespaced',
      names: {
        kind,
        listKind: `${kind}List`,
        plural,
        singular: kind.toLowerCase(),
        shortNames: [shortName],
        categories: ['cluster-api'],
      },
      versions: [
        {
          name: version,
          served: true,
          storage: true,
          additionalPrinterColumns: [...columns, age],
          subresources: { status: {}, ...(hasScale && { scale }) },
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                apiVersion: { type: 'string' },
                kind: { type: 'string' },
                metadata: { type: 'object' },
                spec: { ...anything, ...spec },
                status: anything,
              },
            },
          },
        },
      ],
    },
  }
}

/** The CRDs of all kinds, as plain objects. */
export function clusterApiCrds(served: SimulatedKinds): readonly object[] {
  const counted = { required: ['clusterName', 'template'], properties: { replicas: whole } }
  const phase = column('Phase', 'string', '.status.phase')
  return [
    { type: served.cluster, shortName: 'cl', columns: [phase] },
    {
      type: served.deployment,
      shortName: 'md',
      columns: [...replicas, phase],
      spec: counted,
      hasScale: true,
    },
    { type: served.set, shortName: 'ms', columns: replicas, spec: counted, hasScale: true },
    {
      type: served.machine,
      shortName: 'ma',
      columns: [
        column('Cluster', 'string', '.spec.clusterName'),
        column('Node Name', 'string', '.status.nodeRef.name'),
        column('Provider ID', 'string', '.spec.providerID'),
        phase,
      ],
      spec: { required: ['clusterName'] },
    },
    {
      type: served.pool,
      shortName: 'mp',
      columns: [...replicas, phase],
      spec: counted,
      hasScale: true,
    },
    { type: served.healthCheck, shortName: 'mhc', columns: [] },
    { type: served.template, shortName: 'smt', columns: [] },
    { type: served.poolInstance, shortName: 'spi', columns: [phase] },
  ].map(definition)
}

/** Installs the CRDs unless they exist. */
export function installKinds(api: LocalApi, served: SimulatedKinds): void {
  for (const crd of clusterApiCrds(served)) createUnlessThere(api, crdKind, crd as KubeObject)
}

/** Creates the Cluster and its namespace unless they exist. */
export function installCluster(api: LocalApi, served: SimulatedKinds, namespace: string, name: string): void {
  if (api.get(kinds.namespace, undefined, namespace) === undefined)
    createUnlessThere(api, kinds.namespace, {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: namespace },
    })
  const { group, version, kind } = served.cluster
  const cluster: KubeObject & { readonly spec: object } = {
    apiVersion: `${group}/${version}`,
    kind,
    metadata: { name, namespace },
    spec: { paused: false },
  }
  createUnlessThere(api, served.cluster, cluster)
}

/** Creates an object unless one of its name exists. */
export function createUnlessThere(api: LocalApi, type: ResourceType, object: KubeObject): void {
  try {
    api.create(type, object)
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 409) throw error
  }
}
