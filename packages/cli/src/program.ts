/** The commands of `tenon`: a file each in `program/`, in the order of help. Each loads what it is made of when it runs. */
import { Command } from 'commander'
import type { Io } from './io.ts'
import { examples } from './command-line.ts'
import { addClusterAutoscaler } from './commands/cluster-autoscaler/command.ts'
import { addCompletion } from './commands/completion/command.ts'
import { addConsole } from './commands/console/command.ts'
import { addController } from './commands/controller/command.ts'
import { addCost } from './commands/cost/command.ts'
import { addCrds } from './commands/crds/command.ts'
import { addDevCluster } from './commands/devcluster/command.ts'
import { addExplain } from './commands/explain/command.ts'
import { addInit } from './commands/init/command.ts'
import { addJournal } from './commands/journal/command.ts'
import { addPreflight } from './commands/preflight/command.ts'
import { addRecord } from './commands/record/command.ts'
import { addReplay } from './commands/replay/command.ts'
import { addSchema } from './commands/schema/command.ts'
import { addSimulate } from './commands/simulate/command.ts'
import { addSnapshot } from './commands/snapshot/command.ts'
import { addTest } from './commands/test/command.ts'
import { addGet } from './commands/get/command.ts'
import { addPause, addResume } from './commands/pause/command.ts'
import { addRollout } from './commands/rollout/command.ts'
import { addUp } from './commands/up/command.ts'
import { addValidate } from './commands/validate/command.ts'
import { addView } from './commands/view/command.ts'
import { addVersion } from './commands/version.ts'
import { builtInProviders } from './providers.ts'

const firstName = builtInProviders[0]?.name ?? ''

const commands: readonly ((program: Command, io: Io) => void)[] = [
  addUp,
  addDevCluster,
  addController,
  addClusterAutoscaler,
  addCrds,
  addValidate,
  addInit,
  addPreflight,
  addTest,
  addExplain,
  addConsole,
  addSnapshot,
  addSimulate,
  addJournal,
  addRecord,
  addReplay,
  addGet,
  addCost,
  addCompletion,
  addPause,
  addResume,
  addRollout,
  addSchema,
  addView,
  addVersion,
]

/** The command tree; running it writes to `io` only. */
export function createProgram(io: Io): Command {
  const program = new Command('tenon')
    .description('Node autoscaler for Kubernetes that implements the Karpenter API')
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => {
        write(usageError(text))
      },
    })
    .exitOverride()
    .addHelpText(
      'after',
      examples('tenon up', 'tenon up -f manifests', `tenon controller --provider ${firstName}`),
    )
  for (const add of commands) add(program, io)
  return program
}

/** The parser's complaint as one line in the form of every other error. */
function usageError(text: string): string {
  const line = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
  return `tenon: ${line.replace(/\.$/, '')} (see --help)\n`
}
