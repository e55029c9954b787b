/** Actions of the page and of the viewer with --allow-actions. Each does exactly what its command does. */
import { karpenterKinds, kinds } from '@tenon/api'
import type { Action, ActionPort, ActionRequest } from '@tenon/console'
import { runPause, runResume } from '../pause/run.ts'
import type { Io } from '../../io.ts'
import { onCluster } from '../../kubectl/connection.ts'
import { type ActionFlags, commandOf } from './action-command.ts'
import { changeCommand, changed, objectChanges } from './apply-manifest.ts'
import { drained, setUnschedulable } from './drain.ts'

const types = {
  node: kinds.node,
  nodeclaim: karpenterKinds.nodeClaim,
  nodepool: karpenterKinds.nodePool,
  pod: kinds.pod,
}

/** @param flags of the cluster that is shown. */
export function clusterActions(io: Io, flags: ActionFlags): ActionPort {
  return {
    plan: async (request) =>
      request.kind === 'apply'
        ? await applying(io, flags, request)
        : {
            command: commandOf(request, flags),
            run: async (signal) => await carriedOut(io, flags, request, signal),
          },
  }
}

/** The action is computed again when it is applied; if the cluster has changed since, so has the command. */
async function applying(
  io: Io,
  flags: ActionFlags,
  { manifest }: Extract<ActionRequest, { kind: 'apply' }>,
): ReturnType<ActionPort['plan']> {
  const changes = await onCluster(
    io,
    flags,
    async (connection) => await objectChanges(io, connection, manifest),
  )
  return {
    command: changes.map((change) => changeCommand(change, flags)).join('\n'),
    run: async () =>
      await onCluster(io, flags, async (connection) => {
        const done: string[] = []
        for (const change of changes) done.push(await changed(connection, change))
        return done.join('\n')
      }),
  }
}

/**
 * @returns what was done.
 * @throws CliError or KubectlError if it was not.
 */
export async function carriedOut(
  io: Io,
  flags: ActionFlags,
  action: Action,
  signal: AbortSignal,
): Promise<string> {
  switch (action.kind) {
    case 'pause':
    case 'resume':
      return await braked(io, flags, action)
    case 'cordon':
    case 'uncordon':
      return await onCluster(io, flags, async (connection) => {
        await setUnschedulable(connection, action.node, action.kind === 'cordon')
        return `node/${action.node} ${action.kind}ed`
      })
    case 'drain':
      return await onCluster(
        io,
        flags,
        async (connection) => await drained(connection, action.node, { limitMs: flags.drainTimeout, signal }),
      )
    case 'delete':
      return await onCluster(io, flags, async ({ client }) => {
        const { kind, name, namespace } = action.target
        const type = types[kind]
        await client.delete(type, { name, ...(namespace !== undefined && { namespace }) })
        const group = type.group === '' ? '' : `.${type.group}`
        return `${kind}${group} "${name}" deleted`
      })
  }
}

async function braked(
  io: Io,
  flags: ActionFlags,
  { kind, nodePool }: Extract<Action, { kind: 'pause' | 'resume' }>,
): Promise<string> {
  let output = ''
  const note = (text: string) => {
    output += text
  }
  const targets = nodePool === undefined ? [] : [`nodepool/${nodePool}`]
  const own = { ...io, out: note, err: note }
  const all = { ...flags, dryRun: 'none' as const }
  await (kind === 'pause' ? runPause(own, targets, all) : runResume(own, targets, all))
  return output.trim()
}
