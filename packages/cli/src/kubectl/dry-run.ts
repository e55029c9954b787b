/** Flags of commands that change a cluster. */
import { type Command, Option } from 'commander'
import type { ClusterFlags } from './flags.ts'

/** `client`: nothing is sent. `server`: the server validates the change but does not persist it. */
export type DryRun = 'none' | 'client' | 'server'

export interface ChangeFlags extends ClusterFlags {
  readonly dryRun: DryRun
}

export function withDryRun(command: Command): Command {
  return command.addOption(
    new Option('--dry-run <strategy>', 'client changes nothing; server lets the API server check the change')
      .choices(['none', 'client', 'server'])
      .default('none'),
  )
}

/** The suffix of the line about a change that was not made. */
export function dryRunSuffix(dryRun: DryRun): string {
  return dryRun === 'none' ? '' : dryRun === 'client' ? ' (dry run)' : ' (server dry run)'
}
