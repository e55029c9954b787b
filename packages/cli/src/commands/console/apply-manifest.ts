/** Applies NodePools that were edited on the page, and first NodePools with their node classes. */
import { apiVersionOf, karpenterKinds, type KubeObject, type ResourceType } from '@tenon/api'
import { mergePatchOf } from '@tenon/kube'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import type { ClusterFlags } from '../../kubectl/flags.ts'
import { builtInProviders } from '../../providers.ts'
import { command, quoted } from './action-command.ts'
import { readTypedManifests, writtenObject } from './manifests.ts'

/** An object to create, or a patch of an existing one. */
export type ObjectChange =
  | { readonly kind: 'create'; readonly type: ResourceType; readonly object: KubeObject }
  | { readonly kind: 'patch'; readonly type: ResourceType; readonly name: string; readonly patch: object }

/** Node classes first: a NodePool refers to its class. */
const appliedTypes: readonly ResourceType[] = [
  ...builtInProviders.flatMap(({ nodeClasses }) => nodeClasses),
  karpenterKinds.nodePool,
]

/**
 * The changes that turn the objects of the cluster into those of the manifest.
 * @throws CliError if the manifest contains anything but valid NodePools and node classes, or changes nothing.
 */
export async function objectChanges(
  io: Pick<Io, 'cwd'>,
  { client }: Pick<ClusterConnection, 'client'>,
  manifest: string,
): Promise<readonly ObjectChange[]> {
  const { objects, problems } = await readTypedManifests(io, manifest)
  const wrong = problems.find(({ severity }) => severity === 'error')
  if (wrong !== undefined) throw new CliError(`${wrong.line}:${wrong.column}: ${wrong.message}`)
  const typed = objects.map((object) => ({
    object,
    at: appliedTypes.findIndex((type) => isOf(object, type)),
  }))
  const foreign = typed.find(({ at }) => at < 0)
  if (foreign !== undefined)
    throw new CliError(
      `${foreign.object.kind} ${foreign.object.metadata.name} is no NodePool and no node class`,
    )
  const changes: ObjectChange[] = []
  for (const { at, object } of typed.toSorted((a, b) => a.at - b.at)) {
    const type = appliedTypes[at] ?? karpenterKinds.nodePool
    const { name } = object.metadata
    const known = await client.get(type, { name })
    if (known === undefined) {
      changes.push({ kind: 'create', type, object })
      continue
    }
    const patch = mergePatchOf(changeable(known), changeable(object))
    if (patch !== undefined) changes.push({ kind: 'patch', type, name, patch })
  }
  if (changes.length === 0) throw new CliError('nothing to apply: the cluster has it so')
  return changes
}

function isOf({ apiVersion, kind }: KubeObject, type: ResourceType): boolean {
  return kind === type.kind && apiVersion === apiVersionOf(type)
}

/** The fields that users set, besides the name. */
function changeable(object: KubeObject): object {
  const { metadata, spec } = writtenObject(object)
  const { annotations = {}, labels = {} } = metadata
  return { metadata: { annotations, labels }, spec }
}

export function changeCommand(change: ObjectChange, flags: ClusterFlags): string {
  if (change.kind === 'create')
    return createCommand(`${JSON.stringify(change.object, undefined, 2)}\n`, flags)
  const patch = quoted(JSON.stringify(change.patch))
  return command(flags, 'kubectl patch', resourceOf(change.type), change.name, '--type=merge', '-p', patch)
}

/** The command that creates the objects of a manifest. */
export function createCommand(manifest: string, flags: ClusterFlags): string {
  return `${command(flags, 'kubectl create -f -')} <<'END'\n${manifest}END`
}

/** @returns what was done. */
export async function changed(
  { client }: Pick<ClusterConnection, 'client'>,
  change: ObjectChange,
): Promise<string> {
  const { type } = change
  const name = change.kind === 'create' ? change.object.metadata.name : change.name
  if (change.kind === 'create') await client.create(type, change.object)
  else await client.patch(type, { name }, change.patch)
  return `${resourceOf(type)}.${type.group}/${name} ${change.kind === 'create' ? 'created' : 'patched'}`
}

/** In the singular, as kubectl writes it. */
function resourceOf({ kind }: ResourceType): string {
  return kind.toLowerCase()
}
