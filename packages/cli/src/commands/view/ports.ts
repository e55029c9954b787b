/** What the viewer calls: explanations, objects, actions. */
import { apiVersionOf, type KubeObject, matchesSelector } from '@tenon/api'
import type { Snapshot } from '@tenon/ask'
import type { LabelMatcher, Target, Timeline, ExplainedReason, ViewerPorts } from '@tenon/console'
import { isKubeError } from '@tenon/kube'
import { CliError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import type { ClusterConnection } from '../../kubectl/connection.ts'
import { nodeClaimKind, nodeKind, nodePoolKind, podKind } from '../../kubectl/kinds.ts'
import { formatOf } from '../../kubectl/output/format.ts'
import { printObjects } from '../../kubectl/output/objects.ts'
import { labelSelectorOf } from '../../kubectl/selectors.ts'
import { objectsOfCluster, objectsOfSnapshot } from '../../source/cluster-objects.ts'
import { eventsOf } from '../../source/events.ts'
import { commandOf } from '../console/action-command.ts'
import { carriedOut } from '../console/actions.ts'
import { actionFlagsOf, type ViewFlags } from './flags.ts'

/** A running cluster, a snapshot, or a recording. */
export type ViewSource =
  | { readonly kind: 'live'; readonly connection: ClusterConnection }
  | { readonly kind: 'snapshot'; readonly snapshot: Snapshot }
  | { readonly kind: 'trace'; readonly timeline: Timeline }

const namedKinds = { node: nodeKind, nodeclaim: nodeClaimKind, nodepool: nodePoolKind, pod: podKind }

export const matchLabels: LabelMatcher = (text) => {
  const selector = labelSelectorOf(text)
  return (labels) => matchesSelector(selector, labels)
}

/**
 * Explanations run `tenon explain` in a process of its own: they may take long, and the viewer must react to
 * keys.
 */
export function viewerPorts(io: Io, flags: ViewFlags, source: ViewSource): ViewerPorts {
  const tenon = (args: readonly string[]) => runTenon(io, [...args, ...sourceArguments(flags)])
  return {
    explain: async (target) => {
      const { kind, name, namespace } = target
      if (source.kind === 'trace')
        throw new CliError('a recording does not tell why: tenon replay plays it under other rules')
      const where = namespace === undefined ? [] : ['-n', namespace]
      const out = await tenon(['explain', `${kind}/${name}`, ...where, '--color', 'never'])
      const events = source.kind === 'live' ? await eventLines(source.connection, target, io) : []
      return [...out.trimEnd().split('\n'), ...events]
    },
    yaml: async (target) => {
      const object = await objectOf(io, target, source)
      if (object === undefined) throw new CliError(`${target.kind} ${target.name} is gone`)
      let text = ''
      const format = formatOf('yaml')
      if (format.kind === 'plain') return []
      printObjects((part) => (text += part), format, {
        objects: [withoutManagedFields(object)],
        isList: false,
        nameOf: ({ metadata }) => metadata.name,
      })
      return text.trimEnd().split('\n')
    },
    commandOf: (action) => commandOf(action, actionFlagsOf(flags)),
    act: async (action) => {
      if (source.kind !== 'live') throw new CliError(`a ${source.kind} cannot be changed`)
      return await carriedOut(io, actionFlagsOf(flags), action, io.interrupted)
    },
  }
}

const shownEvents = 20

/** The last events of an object, oldest first. */
async function eventLines(
  connection: ClusterConnection,
  { kind, name, namespace }: Target,
  { interrupted: signal }: Pick<Io, 'interrupted'>,
): Promise<readonly string[]> {
  const ref = { kind: namedKinds[kind].type.kind, name, ...(namespace !== undefined && { namespace }) }
  try {
    const events = (await eventsOf(connection, ref, undefined, signal)).slice(0, shownEvents)
    const lines = events.toReversed().map(({ at = '', count, message, reason, type }) => {
      const times = count > 1 ? ` (${count} times)` : ''
      return `${at} ${type} ${reason}: ${message}${times}`
    })
    return ['', lines.length === 0 ? 'No events' : 'Events:', ...lines]
  } catch (error) {
    if (!isKubeError(error)) throw error
    return ['', `Events are not known: ${error.serverMessage ?? error.message}`]
  }
}

/** The reason of each pending pod, from `tenon explain pods -A`. */
export async function pendingReasons(
  io: Pick<Io, 'interrupted' | 'runSelf'>,
  flags: ViewFlags,
): Promise<readonly ExplainedReason[]> {
  const out = await runTenon(io, ['explain', 'pods', '-A', '-o', 'json', ...sourceArguments(flags)])
  const { items = [] } = JSON.parse(out) as { readonly items?: readonly Explained[] }
  return items.map(({ namespace, name, code, summary, place }) => {
    const plannedFor = place?.node ?? place?.nodeClaim
    return { namespace, name, code, summary, ...(plannedFor !== undefined && { plannedFor }) }
  })
}

interface Explained {
  readonly namespace: string
  readonly name: string
  readonly code: string
  readonly summary: string
  readonly place?: { readonly node?: string; readonly nodeClaim?: string }
}

async function runTenon(io: Pick<Io, 'interrupted' | 'runSelf'>, args: readonly string[]): Promise<string> {
  if (io.runSelf === undefined) throw new CliError('this program cannot run itself here')
  const { code, out, err } = await io.runSelf(args, io.interrupted)
  if (code !== 0) throw new CliError(err.trim().split('\n').at(-1) ?? `tenon ended with ${code}`)
  return out
}

function sourceArguments({
  kubeconfig,
  context,
  snapshot,
  catalogue,
  controller,
}: ViewFlags): readonly string[] {
  const given = { kubeconfig, context, snapshot, catalogue, controller }
  return Object.entries(given).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}=${value}`]))
}

async function objectOf(
  io: Pick<Io, 'interrupted'>,
  { kind, name, namespace }: Target,
  source: ViewSource,
): Promise<KubeObject | undefined> {
  const named = namedKinds[kind]
  const { type } = named
  const flags = namespace === undefined ? {} : { namespace }
  switch (source.kind) {
    case 'live': {
      const object = await objectsOfCluster(source.connection, flags, io.interrupted).get(named, name)
      return object && { ...object, apiVersion: apiVersionOf(type), kind: type.kind }
    }
    case 'snapshot':
      return await objectsOfSnapshot(source.snapshot, flags).get(named, name)
    case 'trace':
      return source.timeline.object(type, name)
  }
}

function withoutManagedFields(object: KubeObject): KubeObject {
  const { managedFields: _, ...metadata } = object.metadata as KubeObject['metadata'] & {
    readonly managedFields?: unknown
  }
  return { ...object, metadata }
}
