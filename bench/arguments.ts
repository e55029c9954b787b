/** Parses the arguments of a benchmark; prints help on request, or if they are invalid. */
import { parseArgs } from 'node:util'

interface Option {
  readonly type: 'string' | 'boolean'
  readonly default?: string | boolean
  /** A clause for the help. */
  readonly help: string
}

type Values<T extends Readonly<Record<string, Option>>> = {
  readonly [K in keyof T]: T[K]['type'] extends 'boolean'
    ? boolean
    : T[K] extends { readonly default: string }
      ? string
      : string | undefined
}

/**
 * Exits with 0 after printing help, and with 2 after printing one line about unknown arguments.
 * @param about one sentence.
 */
export function benchArguments<const T extends Readonly<Record<string, Option>>>(
  name: string,
  about: string,
  options: T,
): Values<T> {
  try {
    const known: Readonly<Record<string, { readonly type: Option['type'] }>> = {
      ...options,
      help: { type: 'boolean' },
    }
    const values: Record<string, unknown> = parseArgs({ options: known }).values
    if (values['help'] === true) {
      console.log(usageOf(name, about, options))
      process.exit(0)
    }
    const missing = Object.entries(options).filter(([, { type }]) => type === 'boolean')
    return { ...Object.fromEntries(missing.map(([key]) => [key, false])), ...values } as Values<T>
  } catch (error) {
    console.error(`${name}: ${error instanceof Error ? error.message : String(error)}`)
    console.error(`npm run bench:${name} -- --help lists the options.`)
    process.exit(2)
  }
}

function usageOf(name: string, about: string, options: Readonly<Record<string, Option>>): string {
  const rows = Object.entries(options).map(([key, option]) => {
    const value = option.type === 'string' ? ' VALUE' : ''
    const given = typeof option.default === 'string' ? ` (default: ${option.default})` : ''
    return `  ${`--${key}${value}`.padEnd(22)} ${option.help}${given}`
  })
  return [`Usage: npm run bench:${name} -- [options]`, '', about, '', ...rows].join('\n')
}
