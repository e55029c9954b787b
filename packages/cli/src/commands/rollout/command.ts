import { type Command, InvalidArgumentError } from 'commander'
import type { RolloutFlags, StatusFlags, UndoFlags } from './run.ts'
import type { Io } from '../../io.ts'
import { withClusterFlags } from '../../kubectl/flags.ts'
import { duration, examples } from '../../command-line.ts'
import { withDryRun } from '../../kubectl/dry-run.ts'

export function addRollout(program: Command, io: Io): void {
  const rollout = program
    .command('rollout')
    .summary('Watch, pause and undo the replacement of drifted nodes')
    .description(
      'Shows how far the nodes of a NodePool are replaced after a change, and stops, continues or undoes that. docs/ask/rollout.md says how to make rollouts careful.',
    )
    .addHelpText(
      'after',
      examples(
        'tenon rollout status nodepool/web --timeout 30m',
        'tenon rollout pause nodepool/web',
        'tenon rollout undo nodepool/web',
      ),
    )
  addStatus(rollout, io)
  addOrders(rollout, io)
  addUndo(rollout, io)
}

const target = 'NAME, nodepool/NAME or nodepool NAME'

function addStatus(rollout: Command, io: Io): void {
  const status = rollout
    .command('status')
    .summary('Show how far a rollout is, and wait for its end')
    .description(
      'Prints how many nodes are updated, and waits until all are. Exits with 1 when the rollout is halted, or not done in time.',
    )
    .argument('<nodepool...>', target)
    .option('-w, --watch [boolean]', 'wait for the end; --watch=false prints once', isOn, true)
    .option('--timeout <duration>', 'longest wait, such as 30m; 0 for as long as it takes', duration, 0)
    .action(async (targets: readonly string[], flags: StatusFlags) => {
      const { runStatus } = await import('./run.ts')
      await runStatus(io, targets, flags)
    })
  withClusterFlags(status)
}

function addOrders(rollout: Command, io: Io): void {
  for (const [verb, summary] of [
    ['pause', 'Replace no more drifted nodes of a NodePool for now'],
    ['resume', 'Go on with a rollout that is paused or halted'],
  ] as const) {
    const command = rollout
      .command(verb)
      .summary(summary)
      .description(`${summary}.`)
      .argument('<nodepool...>', target)
      .action(async (targets: readonly string[], flags: RolloutFlags) => {
        const { runRolloutOrder } = await import('./run.ts')
        await runRolloutOrder(io, verb, targets, flags)
      })
    withClusterFlags(withDryRun(command))
  }
}

function addUndo(rollout: Command, io: Io): void {
  const undo = rollout
    .command('undo')
    .summary('Put back the template before the last edit')
    .description(
      'Puts spec.template of a NodePool back to what it was before the last edit of it. Nodes that were launched since then drift, and are replaced. Asks before it does so.',
    )
    .argument('<nodepool...>', target)
    .option('-y, --yes', 'do not ask')
    .action(async (targets: readonly string[], flags: UndoFlags) => {
      const { runUndo } = await import('./run.ts')
      await runUndo(io, targets, flags)
    })
  withClusterFlags(withDryRun(undo))
}

function isOn(value: string): boolean {
  const text = value.replace(/^=/, '').toLowerCase()
  if (text === 'true' || text === 'false') return text === 'true'
  throw new InvalidArgumentError('Use true or false.')
}
