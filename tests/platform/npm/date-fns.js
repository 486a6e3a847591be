import { addMonths, differenceInDays, eachDayOfInterval, format, formatDistance, parse, parseISO } from "date-fns";

export const work = () => [
  format(new Date(Date.UTC(2024, 1, 29, 13, 5)), "yyyy-MM-dd HH:mm EEEE do MMM"),
  addMonths(new Date(0), 13).toISOString(),
  differenceInDays(parseISO("2024-03-01T00:00:00Z"), parseISO("2024-02-01T00:00:00Z")),
  parse("29 Feb 2024 1:05 PM", "d MMM yyyy h:mm a", new Date(0)).toISOString(),
  formatDistance(new Date(0), new Date(4e9), { addSuffix: true }),
  eachDayOfInterval({ start: new Date(0), end: new Date(2e8) }).length,
];
