/** The commands of `tenon`: a file each in `program/`, in the order of help. Each loads what it is made of when it runs. */
import { Command } from 'commander'
import type { Io } from './io.ts'
import { examples } from './program/arguments.ts'
import { addClusterAutoscaler } from './program/cluster-autoscaler.ts'
import { addCompletion } from './program/completion.ts'
import { addConsole } from './program/console.ts'
import { addController } from './program/controller.ts'
import { addCost } from './program/cost.ts'
import { addCrds } from './program/crds.ts'
import { addDevCluster } from './program/devcluster.ts'
import { addExplain } from './program/explain.ts'
import { addInit } from './program/init.ts'
import { addJournal } from './program/journal.ts'
import { addPreflight } from './program/preflight.ts'
import { addRecord } from './program/record.ts'
import { addReplay } from './program/replay.ts'
import { addSchema } from './program/schema.ts'
import { addSimulate } from './program/simulate.ts'
import { addSnapshot } from './program/snapshot.ts'
import { addTest } from './program/test.ts'
import { addGet } from './program/get.ts'
import { addPause, addResume } from './program/pause.ts'
import { addRollout } from './program/rollout.ts'
import { addUp } from './program/up.ts'
import { addValidate } from './program/validate.ts'
import { addView } from './program/view.ts'
import { addVersion } from './program/version.ts'
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
