/** The commands of `tenon`, each in a folder of `commands/` that is loaded on demand. */
import { Command, Help } from 'commander'
import type { Io } from './io.ts'
import { examples } from './command-line.ts'
import { builtInProviders } from './providers.ts'
import { version } from './version.ts'

const usualHelp = new Help()
const firstName = builtInProviders[0]?.name ?? ''

type AddCommand = (program: Command, io: Io) => void

/** In the order of help. */
const commands: ReadonlyMap<string, () => Promise<AddCommand>> = new Map([
  ['up', async () => (await import('./commands/up/command.ts')).addUp],
  ['devcluster', async () => (await import('./commands/devcluster/command.ts')).addDevCluster],
  ['controller', async () => (await import('./commands/controller/command.ts')).addController],
  [
    'cluster-autoscaler',
    async () => (await import('./commands/cluster-autoscaler/command.ts')).addClusterAutoscaler,
  ],
  ['crds', async () => (await import('./commands/crds/command.ts')).addCrds],
  ['validate', async () => (await import('./commands/validate/command.ts')).addValidate],
  ['init', async () => (await import('./commands/init/command.ts')).addInit],
  ['preflight', async () => (await import('./commands/preflight/command.ts')).addPreflight],
  ['test', async () => (await import('./commands/test/command.ts')).addTest],
  ['explain', async () => (await import('./commands/explain/command.ts')).addExplain],
  ['console', async () => (await import('./commands/console/command.ts')).addConsole],
  ['snapshot', async () => (await import('./commands/snapshot/command.ts')).addSnapshot],
  ['simulate', async () => (await import('./commands/simulate/command.ts')).addSimulate],
  ['journal', async () => (await import('./commands/journal/command.ts')).addJournal],
  ['record', async () => (await import('./commands/record/command.ts')).addRecord],
  ['replay', async () => (await import('./commands/replay/command.ts')).addReplay],
  ['get', async () => (await import('./commands/get/command.ts')).addGet],
  ['cost', async () => (await import('./commands/cost/command.ts')).addCost],
  ['report', async () => (await import('./commands/report/command.ts')).addReport],
  ['completion', async () => (await import('./commands/completion/command.ts')).addCompletion],
  ['pause', async () => (await import('./commands/pause/command.ts')).addPause],
  ['resume', async () => (await import('./commands/pause/command.ts')).addResume],
  ['rollout', async () => (await import('./commands/rollout/command.ts')).addRollout],
  ['migrate', async () => (await import('./commands/migrate/command.ts')).addMigrate],
  ['schema', async () => (await import('./commands/schema/command.ts')).addSchema],
  ['view', async () => (await import('./commands/view/command.ts')).addView],
  ['version', async () => (await import('./commands/version.ts')).addVersion],
])

/**
 * Builds the command tree. Commands write only to `io`.
 * @param asked the first argument: if it names a command, only that one is loaded.
 */
export async function createProgram(io: Io, asked = ''): Promise<Command> {
  const named = commands.get(asked)
  const loading = named === undefined ? [...commands.values()] : [named]
  const added = await Promise.all(loading.map((load) => load()))
  const program = new Command('tenon')
    .description('Node autoscaler for Kubernetes that implements the Karpenter API')
    .configureOutput({
      writeOut: io.out,
      writeErr: io.err,
      outputError: (text, write) => {
        write(usageError(text))
      },
    })
    .configureHelp({
      // An option that can be repeated is absent by default, which goes without saying.
      optionDescription: (option) => usualHelp.optionDescription(option).replace(' (default: [])', ''),
    })
    .version(`v${version}`, '-V, --version', 'print the version')
    .exitOverride()
    .addHelpText(
      'after',
      examples('tenon up', 'tenon up -f manifests', `tenon controller --provider ${firstName}`),
    )
  for (const add of added) add(program, io)
  return program
}

/** Formats an error of the parser like all other errors. */
function usageError(text: string): string {
  const line = text
    .replace(/^error: /, '')
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
  return `error: ${line.replace(/\.$/, '')} (see --help)\n`
}
