/** Colours of the graphs; the page's own are in style.css. AA: 4.5 for text, 3 for lines. */
import type { LimitName } from "./limits.ts";

/** Colours by meaning. */
export interface Palette {
  readonly surface: string;
  readonly ink: string;
  readonly muted: string;
  readonly grid: string;
  readonly stall: string;
  readonly blue: string;
  readonly sky: string;
  readonly green: string;
  readonly amber: string;
  readonly red: string;
  readonly violet: string;
  readonly pink: string;
  readonly slate: string;
  readonly limits: Record<LimitName, string>;
}

/** The name of a colour that a line may have. */
export type Colour =
  "blue" | "sky" | "green" | "amber" | "red" | "violet" | "pink" | "slate" | "ink" | "muted";

const light: Palette = {
  surface: "#ffffff",
  ink: "#172033",
  muted: "#566176",
  grid: "#e6eaf0",
  stall: "#f59e0b",
  blue: "#1d5fd6",
  sky: "#0878a4",
  green: "#0f7a4d",
  amber: "#c26a00",
  red: "#d01f2e",
  violet: "#7c3aed",
  pink: "#be2a83",
  slate: "#64748b",
  limits: {
    receive_window: "#2f6fe4",
    receiver_application: "#0e94b0",
    send_buffer: "#8250df",
    sender_application: "#8492a6",
    slow_start: "#e09a1a",
    loss: "#dc3545",
    link: "#1f9d63",
    application_window: "#be2a83",
    unknown: "#c3ccd8",
  },
};

const dark: Palette = {
  surface: "#141b27",
  ink: "#e6ebf3",
  muted: "#9aa7ba",
  grid: "#263143",
  stall: "#fbbf24",
  blue: "#6ea3ff",
  sky: "#45c1e6",
  green: "#4cc38a",
  amber: "#f0b046",
  red: "#ff6b74",
  violet: "#b394ff",
  pink: "#f283bd",
  slate: "#94a3b8",
  limits: {
    receive_window: "#5b93ff",
    receiver_application: "#2fb3cf",
    send_buffer: "#a585f5",
    sender_application: "#7d8ba0",
    slow_start: "#e8ad3c",
    loss: "#f4606c",
    link: "#3fb681",
    application_window: "#f06bb8",
    unknown: "#4a5669",
  },
};

/** The themes. */
export const palettes = { light, dark };
