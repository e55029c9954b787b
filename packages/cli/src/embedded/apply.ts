/** Applies manifests to the embedded cluster as `kubectl apply --server-side` does. */
import { apiVersionOf, pathOf, type Status, type UnstructuredObject } from '@tenon/api'
import { type Clock, readText } from '@tenon/runtime'
import { CliError } from '../errors.ts'
import type { Manifest } from '../manifests.ts'
import type { Cluster } from './cluster.ts'

/** Kinds that others depend on are applied first. */
const order = [
  'CustomResourceDefinition',
  'Namespace',
  'PriorityClass',
  'StorageClass',
  'ServiceAccount',
  'ConfigMap',
  'Secret',
]
const establishMs = 50
const establishAttempts = 40

/**
 * @param warn called with warnings of the API server.
 * @throws CliError naming the first manifest that was rejected, the field and the reason.
 */
export async function applyManifests(
  cluster: Cluster,
  manifests: readonly Manifest[],
  clock: Clock,
  warn?: (message: string) => void,
): Promise<void> {
  const rank = ({ object }: Manifest) => {
    const index = order.indexOf(object.kind)
    return index < 0 ? order.length : index
  }
  for (const manifest of manifests.toSorted((a, b) => rank(a) - rank(b))) {
    const { source, object } = manifest
    for (const warning of await applyOne(cluster, manifest, clock))
      warn?.(`${source}: ${object.kind} ${object.metadata.name}: ${warning}`)
  }
}

async function applyOne(
  cluster: Cluster,
  { object, source }: Manifest,
  clock: Clock,
): Promise<readonly string[]> {
  const definition = await definitionOf(cluster, object, clock)
  if (definition === undefined) {
    throw new CliError(
      `${source}: no kind ${object.kind} in ${object.apiVersion}; apply its CustomResourceDefinition first`,
    )
  }
  const namespace = definition.namespaced ? (object.metadata.namespace ?? 'default') : undefined
  const response = await cluster.transport.send({
    method: 'PATCH',
    path: `${pathOf(definition, namespace, object.metadata.name)}?fieldManager=tenon&force=true&fieldValidation=Strict`,
    headers: {
      'content-type': 'application/apply-patch+yaml',
      accept: 'application/json',
    },
    body: JSON.stringify(object),
  })
  const text = await readText(response.body)
  if (response.status < 300) return warningsOf(response.headers['warning'])
  const status = JSON.parse(text) as Status
  throw new CliError(
    `${source}: ${object.kind} ${object.metadata.name}: ${status.message ?? `refused with ${response.status}`}`,
  )
}

/** The texts of a `Warning` header. */
function warningsOf(header: string | undefined): readonly string[] {
  const quoted = /299 - "((?:[^"\\]|\\.)*)"/g
  return [...(header ?? '').matchAll(quoted)].map(([, text = '']) => text.replace(/\\(.)/g, '$1'))
}

/** A new definition is served after a moment. */
async function definitionOf(cluster: Cluster, object: UnstructuredObject, clock: Clock) {
  for (let attempt = 0; ; attempt++) {
    const found = cluster.server.local
      .definitions()
      .find((each) => each.kind === object.kind && apiVersionOf(each) === object.apiVersion)
    if (found !== undefined || attempt === establishAttempts) return found
    if (
      attempt > 0 &&
      !cluster.server.local.definitions().some((each) => each.group === object.apiVersion.split('/')[0])
    ) {
      return undefined
    }
    await clock.sleep(establishMs)
  }
}
